"""Hand-ins of the toy assignment, graded through the sandbox: scores come from what the code does, nothing else."""

import json
from dataclasses import replace

import pytest

from mha_grader.course.assignment import Cell, CourseError
from mha_grader.course.records import from_json, to_json
from mha_grader.grading import rebuild
from mha_grader.grading.grade import grade_item, grade_submission
from mha_grader.grading.messages import NOT_WRITTEN
from tests.mha_grader.conftest import QUADRUPLE_TESTS

DOUBLE = "def double(x):\n    if isinstance(x, str):\n        raise TypeError(x)\n    return 2 * x\n"
QUADRUPLE = "def quadruple(x):\n    return double(double(x))\n"
ANSWERS = "answers = {'number': 42}\n"


def hand_in(toy, extra=(), **sources):
    cells = []
    for cell in toy.cells:
        kind = "markdown" if cell.kind == "markdown" else "code"
        metadata = {"nbgrader": {"grade_id": cell.id}}
        cells.append({"cell_type": kind, "source": sources.get(cell.id, cell.released), "metadata": metadata})
        cells += [
            {"cell_type": "code", "source": source, "metadata": {}}
            for after, source in extra
            if after == cell.id
        ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


RIGHT = {"double": DOUBLE, "quadruple": QUADRUPLE, "answers": ANSWERS}


def grade(toy, settings, extra=(), **sources):
    return grade_submission(toy, settings, hand_in(toy, extra, **(RIGHT | sources)))


def scores(record):
    return {item.item: item.score for item in record.items}


def part(record, item, name):
    (found,) = [p for i in record.items if i.item == item for p in i.parts if p.name == name]
    return found


def test_a_right_hand_in_gets_everything_twice_the_same(toy, settings):
    record = grade(toy, settings)
    assert (record.score, record.max_score, record.status) == (6.5, 6.5, "graded")
    assert all(p.status == "pass" and not p.message for item in record.items for p in item.parts)
    assert grade(toy, settings) == record


def test_what_was_released_gets_nothing(toy, settings):
    record = grade_submission(toy, settings, hand_in(toy))
    assert record.score == 0
    assert part(record, "double", "values").reason == NOT_WRITTEN
    assert part(record, "double", "unchanged").status == "not-run"
    assert part(record, "answers", "number").status == "fail"


def test_nearly_right_is_nearly_full_marks(toy, settings):
    record = grade(toy, settings, double="def double(x):\n    x += x\n    return x")
    assert scores(record)["double"] == 2
    assert part(record, "double", "unchanged").status == "fail"
    assert part(record, "double", "refuses text").status == "fail"


def test_a_wrong_answer_is_shown_on_the_public_example(toy, settings):
    record = grade(toy, settings, double="def double(x):\n    return x + 2")
    failed = part(record, "double", "values")
    assert failed.status == "fail"
    assert "double(np.array([1.0, 2.0]))" in failed.message
    assert "at index [0] of the result: expected 2, got 3" in failed.message


def test_an_error_is_told_with_its_line_and_its_text_only_on_the_example(toy, settings):
    source = "def double(x):\n    if x.ndim == 2:\n        raise KeyError(str(x))\n    raise KeyError('here')"
    message = part(grade(toy, settings, double=source), "double", "values").message
    assert "KeyError on line 3 of your cell" in message
    assert "line 4 of your cell: 'here'" in message
    assert "[[" not in message


def test_an_errors_text_is_told_without_an_example_if_it_speaks_of_code(toy, settings):
    for line, told in [
        ("return dubble(x)", "raised NameError on line 2 of your cell: name 'dubble' is not defined"),
        (
            "raise TypeError(f'no {x.shape} of {x[0, 0]:.3f}')",
            "raised TypeError on line 2 of your cell: no (#, #) of",
        ),
        ("raise ValueError(x[0, 0])", "raised ValueError on line 2 of your cell."),
    ]:
        record = grade(toy, settings, quadruple=f"def quadruple(x):\n    {line}")
        assert told in part(record, "quadruple", "values").message.split("\n")[0], told


def test_a_right_answer_may_warn_print_and_end_in_an_error(toy, settings):
    source = DOUBLE + "\nimport sys, warnings\nwarnings.warn('w')\nprint('x', file=sys.stderr)\n1 / 0"
    assert grade(toy, settings, double=source).score == 6.5


def test_a_syntax_error_costs_its_item_only(toy, settings):
    record = grade(toy, settings, double="def double(x)\n    return", quadruple="quadruple = lambda x: 4 * x")
    assert scores(record) == {"double": 0, "quadruple": 1.5, "answers": 1}
    failed = part(record, "double", "values")
    assert failed.status == "error"
    assert "SyntaxError on line 1" in failed.message


ENDLESS = """def double(x):
    while True:
        try:
            while True: pass
        except BaseException: pass
"""


# --- an item that calls an earlier one that is wrong ------------------------------------------------------

WRONG_DOUBLE = {
    "wrong": "def double(x):\n    return x + 2",
    "wrong in one part": DOUBLE.replace("TypeError", "ValueError"),
    "not written": "def double(x):\n    raise NotImplementedError()",
    "does not parse": "def double(x)\n    return 2 * x",
    "deletes itself": DOUBLE + "del double",
    "endless": "def double(x):\n    while True: pass",
    "an endless cell": DOUBLE + "while True: pass",
    "ends the process": "import os\ndef double(x):\n    os._exit(0)",
    "a cell that ends the process": DOUBLE + "import os\nos._exit(0)",
}


@pytest.mark.parametrize("double", WRONG_DOUBLE.values(), ids=WRONG_DOUBLE)
def test_a_wrong_item_costs_nothing_where_it_is_called(toy, settings, double):
    record = grade(toy, settings, double=double)
    assert scores(record)["double"] < 4
    assert scores(record)["quadruple"] == 1.5
    assert scores(record)["answers"] == 1


def test_what_passes_only_with_right_code_is_marked(toy, settings):
    record = grade(toy, settings, double=WRONG_DOUBLE["wrong"])
    carried = part(record, "quadruple", "values")
    assert (carried.status, carried.carried, carried.message) == ("pass", True, "")
    assert [item.stood_in for item in record.items] == [(), ("double",), ()]
    assert [item.earned_alone for item in record.items] == [False, False, True]
    assert from_json(to_json(record)) == record


def test_a_helper_that_calls_the_wrong_item_is_followed(toy, settings):
    extra = [("test_double", "def twice(x):\n    return double(x)")]
    source = "def quadruple(x):\n    return twice(twice(x))"
    assert scores(grade(toy, settings, extra, double="double = None", quadruple=source))["quadruple"] == 1.5


def test_with_right_code_before_it_an_item_has_to_be_right_itself(toy, settings):
    record = grade(
        toy, settings, double=WRONG_DOUBLE["wrong"], quadruple="def quadruple(x): return double(x)"
    )
    assert scores(record) == {"double": 0, "quadruple": 0, "answers": 1}
    failed = part(record, "quadruple", "values")
    assert (failed.status, failed.carried) == ("fail", False)


def test_an_item_that_names_no_wrong_one_is_tested_once(toy, settings):
    record = grade(toy, settings, double="double = None", quadruple="quadruple = lambda x: 5 * x")
    assert record.log.count("quadruple: tested") == 1
    assert not [line for line in record.log if "again" in line]


def test_right_code_stands_in_only_where_the_solution_calls_it(toy, settings):
    """Else it would answer what it is not needed for, or a question could be answered in two ways."""
    guess = "answers = {'number': 42 if double(1) == 2 else 41}"
    record = grade(toy, settings, double=WRONG_DOUBLE["wrong"], answers=guess)
    assert scores(record) == {"double": 0, "quadruple": 1.5, "answers": 0}
    assert record.items[2].stood_in == ()


def test_what_stands_in_does_not_call_what_is_wrong(toy, settings):
    right = "def octuple(x):\n    return 2 * quadruple(x)"
    tests = QUADRUPLE_TESTS.replace("quadruple", "octuple").replace("4 *", "8 *")
    more = [
        Cell("octuple", "solution", "", right, "octuple"),
        Cell("test_octuple", "test", "", tests, "octuple", 1.5),
    ]
    longer = replace(toy, cells=(*toy.cells, *more))
    quadruple = QUADRUPLE.replace("double(double(x))", "3 * double(x)")
    record = grade(longer, settings, double=WRONG_DOUBLE["wrong"], quadruple=quadruple, octuple=right)
    assert scores(record) == {"double": 0, "quadruple": 0, "answers": 1, "octuple": 1.5}


def test_no_code_of_a_student_runs_without_right_code_after_it_ran_with_it(toy, settings):
    """What it saw could come back by signs; and time that a second run takes is no other item's."""
    record = grade(toy, settings, double=WRONG_DOUBLE["wrong"])
    tested = [line for line in record.log if "tested" in line]
    assert tested[:3] == ["double: tested", "quadruple: tested", "answers: tested"]
    assert tested[3:] == ["quadruple: tested again, with right double"]


# In the second process the right `double` can be read. Whatever an item makes of that must not leave it.
READS = {
    "in an error's name": "raise type(found, (Exception,), {})()",
    "in an error's text": "raise ValueError(found)",
    "in a result": "return np.full(x.shape, 1000.0 + ord(found[1:2] or '0'))",
    "in a result's kind": "return type(found, (), {})()",
    "in what is printed": "print(found)\n    return found",
}


@pytest.mark.parametrize("way", READS.values(), ids=READS)
def test_right_code_cannot_be_carried_out(toy, settings, way):
    found = "'F' + (double.__doc__ or '').strip(' .').replace(' ', '_')"
    quadruple = f"def quadruple(x):\n    found = {found}\n    {way}\n"
    record = grade(toy, settings, double=WRONG_DOUBLE["wrong"], quadruple=quadruple)
    assert record.items[1].stood_in == ("double",)
    assert scores(record)["quadruple"] == 0
    told = json.dumps(to_json(record)).replace(json.dumps(quadruple), "")
    assert "Twice_x" not in told
    assert "1084" not in told  # its first letter


def test_an_item_is_graded_anew_when_new_tests_find_an_earlier_one_wrong(toy, settings):
    double = DOUBLE.replace("2 * x", "x if np.shape(x) == (2, 5) else 2 * x")
    data = hand_in(toy, **(RIGHT | {"double": double}))
    before = grade_submission(toy, settings, data)
    assert scores(before) == {"double": 4, "quadruple": 0, "answers": 1}
    cells = tuple(replace(cell, source=cell.source.replace("(3, 4)", "(2, 5)")) for cell in toy.cells)
    after = grade_submission(replace(toy, cells=cells, version="2"), settings, data, before)
    assert scores(after) == {"double": 0, "quadruple": 1.5, "answers": 1}
    assert "answers: tested" not in after.log  # its verdict was kept


def test_an_endless_function_costs_its_item_only(toy, settings):
    record = grade(toy, settings, double=ENDLESS, quadruple="quadruple = lambda x: 4 * x")
    assert scores(record) == {"double": 0, "quadruple": 1.5, "answers": 1}
    assert part(record, "double", "values").status == "timeout"


def test_an_endless_cell_costs_its_item_only(toy, settings):
    record = grade(toy, settings, double=DOUBLE + "while True: pass", quadruple="quadruple = lambda x: 4 * x")
    assert scores(record) == {"double": 0, "quadruple": 1.5, "answers": 1}
    assert part(record, "double", "values").status == "timeout"


def test_a_process_that_ends_in_a_call_is_survived(toy, settings):
    source = "import os\ndef quadruple(x):\n    os._exit(0)"
    record = grade(toy, settings, quadruple=source)
    assert scores(record) == {"double": 4, "quadruple": 0, "answers": 1}
    assert part(record, "quadruple", "values").status == "error"


def test_what_passed_before_a_crash_counts(toy, settings):
    source = "import os\ncalls = []\ndef double(x):\n    if isinstance(x, str): os._exit(1)\n    return 2 * x"
    record = grade(toy, settings, double=source)
    assert scores(record) == {"double": 3, "quadruple": 1.5, "answers": 1}


def test_too_much_memory_has_its_status(toy, settings):
    source = "def quadruple(x):\n    return np.ones(2**33)"
    record = grade(toy, settings, quadruple=source)
    assert part(record, "quadruple", "values").status == "memory"
    assert scores(record)["answers"] == 1


def test_added_cells_run_in_their_place_and_their_errors_do_not_count(toy, settings):
    extra = [
        ("imports", "def helper(x):\n    return half(4 * x)"),
        ("imports", "1 / 0"),
        ("double", "%timeit -n1 -r1 helper(1)"),
        ("test_double", "while True: pass"),
        ("test_double", "double = None"),
    ]
    source = DOUBLE.replace("return 2 * x", "return helper(x)")
    record = grade(toy, settings, extra, double=source, quadruple="quadruple = lambda x: 4 * x")
    assert record.score == 6.5


def test_what_became_of_a_given_file_and_its_import_costs_and_earns_nothing(toy, settings, tmp_path):
    data = json.loads(
        hand_in(
            toy,
            double=DOUBLE.replace("return 2 * x", "return half(4 * x)"),
            quadruple="from helper import quadruple",
            answers="from helper import answers",
        )
    )
    data["cells"] = [cell for cell in data["cells"] if "import half" not in cell["source"]]
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "toy.ipynb").write_text(json.dumps(data))
    (folder / "helper.py").write_text(f"def half(x): return x / 3\n{DOUBLE}{QUADRUPLE}{ANSWERS}")
    record = grade_submission(toy, settings, rebuild.find(folder, toy).data)
    assert (record.status, scores(record)) == ("graded", {"double": 4, "quadruple": 0, "answers": 0})
    assert part(record, "quadruple", "values").status == "error"


def test_the_same_name_may_be_used_again_below_its_test(toy, settings):
    record = grade(toy, settings, [("test_double", "double = lambda x: 3 * x")])
    assert scores(record) == {"double": 4, "quadruple": 0, "answers": 1}  # as in the notebook


@pytest.mark.parametrize(
    "answers",
    [
        "answers = None",
        "answers = 42",
        "answers = {'number': object()}",
        "del answers",
        "answers = {'number': True}",
    ],
)
def test_answers_that_are_no_dict_of_answers_score_nothing(toy, settings, answers):
    record = grade(toy, settings, answers=answers)
    assert scores(record) == {"double": 4, "quadruple": 1.5, "answers": 0}


HOSTILE = {
    "hooks the display": "import sys\nsys.displayhook('ok')\nsys.displayhook = lambda x: None",
    "patches the comparison": (
        "import numpy as np\nnp.testing.assert_allclose = lambda *a, **k: None\n"
        "np.allclose = lambda *a, **k: True\nnp.isfinite = lambda *a: np.True_"
    ),
    "equals everything": (
        "class Yes(np.ndarray):\n    def __eq__(self, other): return True\n    def __sub__(self, other): return 0\n"
        "def double(x): return np.zeros_like(x).view(Yes)"
    ),
    "patches builtins": "import builtins\nbuiltins.AssertionError = Warning\nbuiltins.isinstance = lambda *a: True",
    "transforms the input": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])",
    "shadows numpy": "import sys, types\nsys.modules['numpy'] = types.ModuleType('numpy')",
    "shadows what is given": (
        "import sys, types\nfake = types.ModuleType('helper')\nfake.half = lambda x: x\n"
        "sys.modules['helper'] = fake\nimport os\nos.makedirs('helper')"
    ),
    "looks at the frames": (
        "import sys\nf = sys._getframe()\nwhile f:\n    for v in list(f.f_locals.values()):\n"
        "        if isinstance(v, dict) and 'status' in v: v['status'] = 'pass'\n    f = f.f_back"
    ),
    "patches the worker": (
        "import sys\nw = sys.modules['_wire']\nold = w.send\n"
        "w.send = lambda channel, message: old(channel, {**message, 'status': 'ok', 'value': None, 'changed': []})"
    ),
    "leaves at exit": "import atexit, os\natexit.register(lambda: os._exit(0))",
    "runs a thread": (
        "import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()"
    ),
}


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_trick_earns_nothing(toy, settings, trick):
    stub = "def double(x):\n    return None\n"
    record = grade(
        toy, settings, double=stub + HOSTILE[trick], quadruple="def quadruple(x): pass", answers="answers = 1"
    )
    assert record.score == 0


def test_text_of_a_student_reaches_no_terminal(toy, settings):
    source = "class E(Exception): pass\nE.__name__ = 'E\\x1b[31m'\ndef double(x): raise E('\\x1b[31m' * 9)"
    record = grade(toy, settings, double=source)
    assert "\x1b" not in json.dumps(part(record, "double", "values").message, ensure_ascii=False)


def test_no_cells_is_a_record_with_nothing_run(toy, settings):
    record = grade_submission(toy, settings, b"not a notebook")
    assert (record.status, record.score, record.max_score) == ("not-json", 0, 6.5)
    assert {p.status for item in record.items for p in item.parts} == {"not-run"}


# --- one item in a plain file -----------------------------------------------------------------------------


def test_one_item_is_graded_with_the_given_names_and_what_it_brings(toy, settings):
    source = "def twice(x): return half(4 * x)\ndef quadruple(x): return np.multiply(2, twice(x))"
    record = grade_item(toy, settings, "quadruple", source)
    assert (record.score, record.status) == (1.5, "pass")


def test_other_items_are_not_there(toy, settings):
    record = grade_item(toy, settings, "quadruple", QUADRUPLE)
    assert (record.score, record.status) == (0, "error")


def test_an_unknown_item_is_named_with_those_that_there_are(toy, settings):
    with pytest.raises(CourseError, match="double, quadruple, answers"):
        grade_item(toy, settings, "triple", "")


def test_library_code_in_a_cell_that_was_added_is_shown_where_an_item_uses_it(toy, settings):
    helper = "def helper(Q, K, V):\n    return F.scaled_dot_product_attention(Q, K, V)"
    course = replace(toy, library=("scaled_dot_product_attention",))
    record = grade(course, settings, [("imports", helper)], quadruple=QUADRUPLE + "    helper(x, x, x)\n")
    flags = {item.item: item.flags for item in record.items}
    assert (flags["double"], len(flags["quadruple"])) == ((), 1)
    assert flags["quadruple"][0].startswith(
        "in a cell that was added, line 2 uses a library's scaled_dot_product"
    )
