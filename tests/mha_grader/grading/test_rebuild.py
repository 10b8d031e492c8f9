"""Whatever is handed in, the right sources are found in it, or a named status comes back."""

import dataclasses
import json

import pytest

from mha_grader.course.assignment import Cell
from mha_grader.grading import rebuild

DOUBLE = "def double(x):\n    return x + x"


def cell(source, grade_id=None, kind="code", **metadata):
    if grade_id is not None:
        metadata["nbgrader"] = {"grade_id": grade_id}
    return {"cell_type": kind, "source": source, "metadata": metadata}


def notebook(cells, **fields):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **fields}).encode()


def released(toy, **sources):
    return [
        cell(sources.get(c.id, c.released), c.id, "markdown" if c.kind == "markdown" else "code")
        for c in toy.cells
    ]


def test_a_plain_hand_in_is_taken_as_it_is(toy):
    rebuilt = rebuild.rebuild(toy, notebook(released(toy, double=DOUBLE)))
    assert rebuilt.sources["double"] == DOUBLE
    assert rebuilt.sources["quadruple"] == toy.cell("solution", "quadruple").released
    assert (rebuilt.status, rebuilt.added, rebuilt.item_notes) == ("graded", {}, {})


def test_test_cells_outputs_and_tags_are_ignored(toy):
    cells = released(toy, double=DOUBLE, test_double="raise SystemExit")
    cells[3]["metadata"] |= {"tags": ["skip-execution"]}
    cells[3]["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "100"}}]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.added == {}
    assert rebuilt.sources["double"] == DOUBLE


def test_of_a_copied_cell_the_last_written_one_counts(toy):
    stub = toy.cell("solution", "double").released
    cells = released(toy)
    cells[3:3] = [cell("double = 1", "double"), cell(DOUBLE, "double"), cell(stub, "double")]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.sources["double"] == DOUBLE
    assert "4 times" in rebuilt.item_notes["double"][0]
    assert rebuilt.status == "repaired"


def test_a_helper_that_was_split_off_its_cell_is_an_added_cell(toy):
    helper = "def twice(x):\n    return x + x"
    cells = released(toy, double="def double(x):\n    return twice(x)")
    cells[2:2] = [cell(helper, "double")]
    cells[4:4] = [cell("print(double(2))", "double"), cell(" ", "double")]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.sources["double"] == "def double(x):\n    return twice(x)"
    assert rebuilt.added == {"imports": [helper], "double": ["print(double(2))"]}
    assert rebuilt.hints == {}


def test_a_given_cell_that_was_changed_keeps_its_place_without_metadata(toy):
    given = Cell("given_half", "given", "def third(x):\n    return x / 2", "def third(x):\n    return x / 2")
    other = dataclasses.replace(toy, cells=(*toy.cells[:2], given, *toy.cells[2:]))
    mended = "def third(x):\n    return x / 3"
    cells = [cell(c.released, None, "markdown" if c.kind == "markdown" else "code") for c in other.cells]
    cells[2]["source"] = mended
    assert rebuild.rebuild(other, notebook(cells)).added == {"given_half": [mended]}
    cells[2:2] = [cell(given.released)]
    assert rebuild.rebuild(other, notebook(cells)).added == {"given_half": [mended]}


def test_what_is_defined_too_late_is_told(toy):
    helper = "def twice(x):\n    return x + x"
    cells = released(toy, double="def double(x):\n    y = twice(x)\n    return np.abs(half(y)) + later")
    cells[4:4] = [cell(helper)]
    cells += [cell("y, unused, half = 1, 2, 3\nlater = 0")]  # `half` is given, too
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert [hint.partition(" ")[0] for hint in rebuilt.hints["double"]] == ["twice", "later"]
    assert rebuilt.status == "graded"
    cells[2:2] = [cell(helper), cell("later = 1")]
    assert rebuild.rebuild(toy, notebook(cells)).hints == {}


def test_an_answer_in_a_cell_of_its_own_is_found(toy):
    cells = [*released(toy), cell("import math\n" + DOUBLE)]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.sources["double"].endswith(DOUBLE)
    assert rebuilt.added == {}
    assert "another cell" in rebuilt.item_notes["double"][0]


@pytest.mark.parametrize(
    "answer", [DOUBLE, "double = lambda x: 2 * x", "class double: pass", "def double(x)\n  bad"]
)
def test_without_metadata_cells_are_known_by_what_they_define(toy, answer):
    cells = [cell(c["source"], None, c["cell_type"]) for c in released(toy, double=answer)]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.sources["double"] == answer
    assert rebuilt.added == {}  # given cells and visible tests were known by their text


def test_renamed_ids_and_a_solution_that_became_text(toy):
    cells = released(toy, double=DOUBLE)
    cells[2]["metadata"]["nbgrader"]["grade_id"] = "my_double"
    assert rebuild.rebuild(toy, notebook(cells)).sources["double"] == DOUBLE
    cells = released(toy, double=DOUBLE)
    cells[2]["cell_type"] = "markdown"
    assert rebuild.rebuild(toy, notebook(cells)).sources["double"] == DOUBLE


def test_metadata_that_were_mixed_up_do_not_hide_a_solution(toy):
    quadruple = "def quadruple(x):\n    return 4 * x"
    exchanged = released(toy, double=quadruple, quadruple=DOUBLE)
    rebuilt = rebuild.rebuild(toy, notebook(exchanged))
    assert (rebuilt.sources["double"], rebuilt.sources["quadruple"]) == (DOUBLE, quadruple)
    together = released(toy, double=f"{quadruple}\n{DOUBLE}")
    assert rebuild.rebuild(toy, notebook(together)).sources["quadruple"] == f"{quadruple}\n{DOUBLE}"
    in_a_check = released(toy, test_double=f"{DOUBLE}\nassert double(2) == 4")
    assert rebuild.rebuild(toy, notebook(in_a_check)).sources["double"].startswith(DOUBLE)


def test_a_cell_that_is_too_long_is_cut_and_named(toy):
    rebuilt = rebuild.rebuild(toy, notebook(released(toy, double=DOUBLE + " " * rebuild.MAX_SOURCE + "#")))
    assert len(rebuilt.sources["double"]) == rebuild.MAX_SOURCE
    assert "very long" in rebuilt.item_notes["double"][0]


def test_deleted_cells_are_named(toy):
    rebuilt = rebuild.rebuild(toy, notebook([cell("1 + 1")]))
    assert rebuilt.sources == {"double": "", "quadruple": "", "answers": ""}
    assert "missing" in rebuilt.item_notes["double"][0]


def test_added_cells_keep_their_place_and_given_ones_come_from_the_release(toy):
    cells = released(toy, imports="import numpy as np\nimport math")
    cells.insert(0, cell("before = 1"))
    cells.insert(4, cell("helper = 2"))
    cells.insert(5, cell("text", kind="markdown"))
    cells.reverse()
    cells.reverse()
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert rebuilt.added == {
        None: ["before = 1"],
        "imports": ["import numpy as np\nimport math"],
        "double": ["helper = 2"],
    }


def test_moved_cells_go_back_to_their_place(toy):
    cells = released(toy, double=DOUBLE)
    cells.reverse()
    assert rebuild.rebuild(toy, notebook(cells)).sources["double"] == DOUBLE


def test_too_many_added_cells_are_cut_and_named(toy):
    cells = released(toy) + [cell(f"x = {i}") for i in range(300)]
    rebuilt = rebuild.rebuild(toy, notebook(cells))
    assert sum(map(len, rebuilt.added.values())) == rebuild.MAX_ADDED
    assert "300" in rebuilt.notes[0]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"cell_type": 7, "source": 7, "metadata": 7, "id": 7},
        {"cell_type": "code", "source": ["a", 1, None], "metadata": {"nbgrader": 3}},
        {"cell_type": "code", "source": "x", "metadata": {"nbgrader": {"grade_id": ["double"]}}},
        {"cell_type": "code", "source": "bad \ud800", "metadata": {}},
        {"cell_type": "code", "source": "(" * 100_000, "metadata": {}},
        {"cell_type": "code", "source": "double = " + "-" * 100_000 + "1", "metadata": {}},
        {"cell_type": "code", "source": "x\0y", "metadata": {}},
    ],
    ids=lambda odd: repr(odd)[:40],
)
def test_odd_cells_hurt_nobody(toy, odd):
    rebuilt = rebuild.rebuild(toy, notebook([odd, *released(toy, double=DOUBLE)]))
    assert rebuilt.sources["double"] == DOUBLE
    json.dumps(list(rebuilt.sources.values())).encode()


# --- finding the file -------------------------------------------------------------------------------------


@pytest.fixture
def hand_in(toy, tmp_path):
    """Write files: a notebook with code for `double`, the untouched one if the code is None, or other bytes."""

    def hand_in(**files):
        for name, code in files.items():
            cells = released(toy, **({} if code is None else {"double": code}))
            (tmp_path / f"{name}.ipynb").write_bytes(code if isinstance(code, bytes) else notebook(cells))
        found = rebuild.find(tmp_path, toy)
        return rebuild.rebuild(toy, found.data).sources["double"], found.notes, found.flags

    return hand_in


OTHER = "def double(x):\n    return 2 * x"


def test_the_notebook_is_found_under_its_name(hand_in):
    assert hand_in(toy=DOUBLE, other=OTHER) == (DOUBLE, (), ())


def test_a_renamed_notebook_is_found_and_said(hand_in):
    source, notes, flags = hand_in(**{"toy (1)": DOUBLE})
    assert (source, flags) == (DOUBLE, ())
    assert "toy (1).ipynb" in notes[0]


def test_another_version_beside_the_notebook_is_said_to_the_student_and_to_a_person(hand_in):
    assert hand_in(**{"toy": DOUBLE, "toy-Copy1": OTHER, "scratch": OTHER}) == (
        DOUBLE,
        ("toy.ipynb was graded; toy-Copy1.ipynb beside it was not",),
        ("toy-Copy1.ipynb beside the graded file also contains work",),
    )
    assert hand_in(**{"toy-Copy1": None})[2] == ()


@pytest.mark.parametrize("name", ["toy (1)", "toy-Copy1", "Toy final", "TOY_2"])
def test_beside_an_untouched_notebook_the_one_that_was_written_in_is_graded(hand_in, name):
    source, notes, flags = hand_in(**{"toy": None, name: DOUBLE, "toy-broken": b"{", "scratch": OTHER})
    assert (source, flags) == (DOUBLE, ())
    assert f"{name}.ipynb; it should be toy/toy.ipynb" in notes[0]
    assert f"{name}.ipynb was graded" in notes[1]


def test_of_two_that_were_written_in_beside_an_untouched_one_a_person_is_told(hand_in, toy):
    source, _, flags = hand_in(**{"toy": None, "toy (1)": DOUBLE, "toy (2)": OTHER})
    assert source == toy.cell("solution", "double").released
    assert "toy (1).ipynb, toy (2).ipynb" in flags[0]


def test_of_several_with_other_names_the_only_one_that_was_written_in_is_graded(hand_in):
    assert hand_in(first=None, second=DOUBLE)[0] == DOUBLE
    with pytest.raises(rebuild.Unusable, match=r"there is no toy\.ipynb among"):
        hand_in(third=OTHER)


def test_a_file_in_another_encoding_is_never_called_no_json(toy):
    backslash = "ソ".encode("cp932")  # its second byte is a backslash
    data = notebook(released(toy, double=DOUBLE + "  # x"))
    with pytest.raises(rebuild.Unusable, match="not UTF-8") as caught:
        rebuild.rebuild(toy, data.replace(b"# x", b"# " + backslash + b"x"))
    assert caught.value.status == "not-utf-8"
    rebuilt = rebuild.rebuild(toy, data.replace(b"# x", b"# gr\xf6\xdfer"))
    assert "größer" in rebuilt.sources["double"]
    assert "not UTF-8" in rebuilt.notes[0]


# --- what a person marks ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(toy):
    """The toy assignment with two questions behind each other."""
    cells = []
    for name in ("why", "how"):
        cells.append(Cell(f"{name}_text", "markdown", f"# {name}?", f"# {name}?"))
        cells.append(Cell(name, "markdown", "YOUR ANSWER HERE", "Since.", points=2, by_person=True))
    return dataclasses.replace(toy, cells=(*toy.cells, *cells))


STUB = "YOUR ANSWER HERE"
ANSWERS = {
    "in its cell": ([("why", " As it *is*.\n")], " As it *is*.\n"),
    "in pieces of its cell": ([("why", "One."), ("why", "Two.")], "One.\n\nTwo."),
    "in a copy of its cell": ([("why", "One."), ("why", "One.")], "One."),
    "below its cell": ([("why", STUB), (None, "Below.")], "Below."),
    "in it and below it": ([("why", "In."), (None, "Below.")], "In.\n\nBelow."),
    "above its cell": ([(None, "Above."), ("why", f"{STUB}\n")], "Above."),
    "without metadata": ([(None, "Bare.")], "Bare."),
    "not at all": ([("why", f" {STUB}\n")], None),
    "nothing": ([("why", " \n")], None),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_found_where_it_was_written(asked, case):
    pieces, wanted = ANSWERS[case]
    cells = released(asked, how="For another question.")
    (place,) = (
        number for number, each in enumerate(cells) if each["metadata"]["nbgrader"]["grade_id"] == "why"
    )
    cells[place : place + 1] = [cell(source, grade_id, "markdown") for grade_id, source in pieces]
    rebuilt = rebuild.rebuild(asked, notebook(cells))
    assert rebuilt.answers == {"how": "For another question."} | ({"why": wanted} if wanted else {})
    assert rebuilt.added == {}


def test_a_cell_for_an_answer_that_is_gone_is_named(asked):
    cells = [each for each in released(asked) if each["metadata"]["nbgrader"]["grade_id"] != "how"]
    rebuilt = rebuild.rebuild(asked, notebook(cells))
    assert rebuilt.answers == {}
    assert rebuilt.notes == ["the cell for how is missing from your notebook: copy it from a fresh one"]


def test_of_two_versions_the_one_with_an_answer_is_graded(asked, tmp_path):
    folder = tmp_path / "ann" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.ipynb").write_bytes(notebook(released(asked)))
    (folder / "toy-Copy1.ipynb").write_bytes(notebook(released(asked, why="Here.")))
    assert b"Here." in rebuild.find(folder, asked).data
