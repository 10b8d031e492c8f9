"""nbgrader's notebooks as people have them: graded rightly, and nothing that hostile code does helps it apart."""

import contextlib
import json
import shutil

import nbformat
import numpy as np
import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course import authoring, plain_nbgrader, store
from mha_grader.course.assignment import CourseError, assignment_names, load_assignment
from mha_grader.course.folders import Course
from mha_grader.grading import grade, plain, reference
from mha_grader.grading.messages import RAISED
from mha_grader.grading.settings import settings_of
from mha_grader.instructor import gradebook
from mha_grader.testing.errors import Mismatch
from mha_grader.testing.proxies import Recorder, local
from tests.mha_grader import plain_assignments as plain_courses

APART = {
    "ps1": {"correct_squares", "squares_invalid_input", "correct_sum_of_squares"},
    "arrays": {"centred_values", "facts", "clip"},
    "stack": {"doubles"},
    "tables": {"scaled"},
    "frames": {"totals"},
    "essay": {"f", "plot", "shown"},
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return plain_courses.make(tmp_path_factory.mktemp("plain") / "course", *plain_courses.SOURCES)


def fresh(course, folder):
    """A copy of the course in which nothing has been handed in."""
    return shutil.copytree(course, folder, ignore=shutil.ignore_patterns("submitted", "grades"))


def graded(course, name, *args, **kwargs):
    folder = plain_courses.hand_in(course, name, "student", *args, **kwargs)
    return grade.grade_student(Course(course), load_assignment(course, name), folder, force=True)


def statuses(record):
    return {item.item: item.status for item in record.items}


def test_they_are_assignments_like_others(course):
    assert assignment_names(course) == sorted(plain_courses.SOURCES)
    assert authoring.check(course) == []


@pytest.mark.parametrize("name", plain_courses.SOURCES)
def test_what_data_can_tell_is_tested_apart(course, name):
    tests = plain.tests_of(load_assignment(course, name)).values()
    assert {test.item for test in tests if test.apart} == APART[name]
    assert not any(test.failure for test in tests)
    reference.check(load_assignment(course, name), b"secret")


@pytest.mark.parametrize("name", plain_courses.SOURCES)
def test_the_solutions_have_all_points_and_what_was_handed_out_has_none(course, name):
    record = graded(course, name)
    assert record.score == record.max_by_tests > 0
    in_process = {item.item for item in record.items if any(part.in_process for part in item.parts)}
    assert in_process == set(statuses(record)) - APART[name]
    assert not any(item.flags for item in record.items)
    assert graded(course, name, solved=False).score == 0


def test_the_command_grades_a_class_and_says_where_trust_is_lost(course, tmp_path, capsys):
    course = fresh(course, tmp_path / "course")
    answer = "Since **two** times two is four."
    for name in ("ps1", "essay"):
        plain_courses.hand_in(course, name, "ada", {"why": answer})
        plain_courses.hand_in(course, name, "bob", solved=False)
        assert cli.main(["--course", str(course), "grade", name]) == 0
    out, _ = capsys.readouterr()
    (line,) = (line for line in out.splitlines() if "own process" in line)
    assert line.startswith("sum_of_squares_uses_squares: tested in the student's own process")

    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        scores = {
            (name, each.student_id): (each.score, each.max_score, each.needs_manual_grade)
            for name in ("ps1", "essay")
            for each in book.assignment_submissions(name)
        }
    assert scores[("ps1", "ada")] == (4, 4, False)
    assert scores[("ps1", "bob")] == (0, 4, False)
    # Two cells and a task are left for a person, who finds the student's text in formgrader.
    assert scores[("essay", "ada")] == (2, 11, True)
    graded = json.loads((course / "autograded" / "ada" / "essay" / "essay.ipynb").read_text())
    assert answer in ["".join(cell["source"]) for cell in graded["cells"]]
    records = {student: store.load(course / "grades" / "essay", student) for student in ("ada", "bob")}
    assert [(each.item, each.max_score, each.written) for each in records["ada"].answers] == [
        ("why", 3, True),
        ("drawing", 2, True),
        ("drawn", 4, True),  # a task: only a person can see whether there is anything
    ]
    assert [each.written for each in records["bob"].answers] == [False, False, True]
    assert (records["ada"].max_score, records["ada"].max_by_tests) == (11, 2)

    # A mark stands while nothing changes; that of a task depends on everything in the notebook.
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        for cell in ("why", "drawing", "drawn"):
            grade = book.find_grade(cell, "essay", "essay", "ada")
            grade.manual_score, grade.needs_manual_grade = 1, False
        book.db.commit()
    for sources, changed in (({"why": answer}, set()), ({"why": "Other."}, {"why", "drawn"})):
        plain_courses.hand_in(course, "essay", "ada", sources)
        assert cli.main(["--course", str(course), "grade", "essay", "--force", "--quiet"]) == 0
        entry = gradebook.read(Course(course), "essay")["ada"]
        assert entry.by_hand == {"why": 1, "drawing": 1, "drawn": 1}
        assert set(entry.waiting(store.load(course / "grades" / "essay", "ada"))) == changed

    assert cli.main(["--course", str(course), "log", "ps1", "ada"]) == 0
    assert "where code can forge a pass" in capsys.readouterr().out


def test_no_student_is_given_a_hidden_test(course):
    for name in plain_courses.SOURCES:
        text = (course / "exercises" / name / f"{name}.ipynb").read_text()
        assert "HIDDEN TESTS" not in text
        assert "secret word" not in text


def test_wrong_code_loses_the_tests_that_it_fails(course):
    record = graded(course, "ps1", {"squares": "def squares(n):\n    return [i * i for i in range(n)]"})
    assert statuses(record) == {
        "correct_squares": "fail",
        "squares_invalid_input": "fail",
        "correct_sum_of_squares": "fail",
        "sum_of_squares_uses_squares": "pass",
    }
    messages = [part.message for item in record.items for part in item.parts]
    assert messages[0] == "A check of this cell failed."  # the visible check has no words of its own
    assert messages[1] == "Squares should raise a ValueError."

    record = graded(course, "ps1", {"squares": "def squares(n):\n    return [1, 5][:n] if n > 1 else [1]"})
    assert record.items[0].parts[0].message == "squares(2) should be [1, 4]."

    record = graded(
        course, "ps1", {"sum_of_squares": "def sum_of_squares(n):\n    return n * (n + 1) * (2 * n + 1) // 6"}
    )
    assert [item for item, status in statuses(record).items() if status != "pass"] == [
        "sum_of_squares_uses_squares"
    ]


def test_an_argument_that_is_changed_in_place_is_changed_for_the_test(course):
    spoils = "def centred(x):\n    x -= x.mean(axis=0)\n    return x"
    assert statuses(graded(course, "arrays", {"centred": spoils}))["centred_values"] == "fail"
    keeps = "def clip(values, low):\n    if type(values) is not list:\n        raise TypeError\n"
    assert statuses(graded(course, "arrays", {"clip": keeps}))["clip"] == "fail"


SAID_OF = {
    "an empty array": ("return 2 * x", "return np.empty((0, *x.shape))", "f returned an empty result"),
    "an empty list": ("return [2 * y for y in x]", "return []", "f returned an empty result"),
    "an empty part": ("return 2 * x, 3", "return x[:0], 3", "f returned an empty result"),
    "arguments": ("return 2 * x", "x[...] = 0\n    return x", "f changes its arguments"),
    "arguments that are emptied": (
        "return 2 * x",
        "x[...] = 0\n    return x[:0]",
        "f returned an empty result",
    ),
    "right, in place": ("return 2 * x", "x *= 2\n    return x", ""),
    "both in place": ("x *= 2\n    return x", "x *= 2\n    return x", ""),
    "both empty": ("return x[:0]", "return x[:0]", ""),
}
CHECKS = {
    "an empty list": "assert all(y == z for y, z in zip(f(x), 2 * x))",
    "an empty part": "assert all(y == z for y, z in zip(f(x)[0], 2 * x))",
    "arguments that are emptied": "assert all(y == z for y, z in zip(f(x), 2 * x))",
    "both empty": "assert all(y == 2 for y in f(x))",
    "right, in place": "assert np.allclose(f(x), [2, 4])",
    "both in place": "assert f(x) is not None and np.allclose(x, [2, 4])",
}


@pytest.mark.parametrize("what", SAID_OF)
def test_nothing_empty_and_no_changed_argument_passes_for_a_result(tmp_path, what):
    right, students, words = SAID_OF[what]
    solution = f"def f(x):\n    ### BEGIN SOLUTION\n    {right}\n    ### END SOLUTION"
    check = "x = np.array([1.0, 2.0])\n" + CHECKS.get(what, "assert np.allclose(f(x), 2 * x)")
    cells = [plain_courses.given("import numpy as np"), plain_courses.graded(solution, "f", solution=True)]
    notebook = plain_courses.notebook(*cells, plain_courses.graded(check, "test_f", points=1))
    found = plain._tests_of(plain_nbgrader.read("one", notebook, notebook)[1], tmp_path)["f"]
    assert found.apart
    namespace = {"np": np}
    exec(f"def f(x):\n    {students}", namespace)
    recorder = Recorder(local(f=namespace["f"]))
    with pytest.raises(Mismatch, match=words) if words else contextlib.nullcontext():
        plain.run_apart(found, recorder, tmp_path)


FORGED = {
    "equal to all": "class Equal(dict):\n    def __eq__(self, other): return True\n"
    "    def __iter__(self): return iter('ab')\ndef totals(rows): return Equal(a=0, b=0)",
    "asserts nothing": "pd.testing.assert_frame_equal = lambda *a, **k: None\ndef totals(rows): return {}",
    "groups by nothing": "def totals(rows): return dict.fromkeys('ab', sum(row['x'] for row in rows))",
}


@pytest.mark.parametrize("form", FORGED)
def test_what_is_wrong_of_a_data_frame_earns_nothing_where_the_test_runs_apart(course, form):
    record = graded(course, "frames", {"totals": FORGED[form]})
    assert statuses(record)["totals"] == "fail"


def test_a_data_frame_that_is_wrong_earns_nothing_and_one_that_forges_is_shown(course):
    wrong = "def largest(frame): return frame.groupby('group', as_index=False).first()"
    assert statuses(graded(course, "frames", {"largest": wrong}))["largest"] == "fail"
    forges = f"pd.testing.assert_frame_equal = lambda *a, **k: None\n{wrong}"
    (item,) = (each for each in graded(course, "frames", {"largest": forges}).items if each.item == "largest")
    assert any("assert_frame_equal" in flag for flag in item.flags)


def test_values_that_students_assign_are_theirs(course):
    record = graded(course, "arrays", {"facts": "columns_of_data, middle, largest = 4, 5.5, {}"})
    assert statuses(record)["facts"] == "fail"
    record = graded(course, "arrays", {"facts": "columns_of_data = 4"})
    assert statuses(record)["facts"] == "error"


def test_what_hangs_or_ends_the_process_is_a_status_even_where_the_test_catches_all(course):
    hangs = "def squares(n):\n    while n < 1:\n        pass\n    return [i * i for i in range(1, n + 1)]"
    assert statuses(graded(course, "ps1", {"squares": hangs}))["squares_invalid_input"] == "timeout"
    ends = hangs.replace("pass", "import os; os._exit(0)")
    assert statuses(graded(course, "ps1", {"squares": ends}))["squares_invalid_input"] == "error"


def test_what_is_not_data_is_named(course):
    record = graded(
        course, "ps1", {"squares": "def squares(n):\n    return (i * i for i in range(1, n + 1))"}
    )
    assert "type generator" in record.items[0].parts[0].message


EQUAL = """
class Equal(list):
    def __eq__(self, other): return True
    def __getattr__(self, name): return self
    def __call__(self, *args): return self
"""
HOSTILE = {
    "equal to all": EQUAL + "def squares(n): return Equal()\ndef sum_of_squares(n): return Equal()",
    "ends the loop": "def squares(n): raise StopIteration\ndef sum_of_squares(n): raise StopIteration",
    "exits": "import sys\ndef squares(n): sys.exit(0)\ndef sum_of_squares(n): sys.exit(0)",
    "exits at once": "import sys\nsys.exit(0)",
    "asserts nothing": (
        "import builtins\nclass Never(Exception): pass\nbuiltins.AssertionError = AssertionError = Never\n"
        "def squares(n): return []\ndef sum_of_squares(n): return 0"
    ),
    "shell": (
        "shell = get_ipython()\nshell.run_cell = shell.run_code = lambda *a, **k: None\n"
        "def squares(n): return []\ndef sum_of_squares(n): return 0"
    ),
}


@pytest.mark.parametrize("form", HOSTILE)
def test_no_trick_passes_a_test_that_runs_apart(course, form):
    record = graded(course, "ps1", {"squares": HOSTILE[form], "sum_of_squares": ""}, extra=HOSTILE[form])
    assert not {item for item, status in statuses(record).items() if status == "pass"} & APART["ps1"]


PATCHED = """
import numpy as np, numpy.testing
np.testing.assert_allclose = assert_allclose = lambda *a, **k: None
def scaled(x): return np.zeros_like(x)
"""


def test_patched_checks_of_numpy_do_not_help_apart(course):
    assert statuses(graded(course, "tables", {"scaled": PATCHED}))["scaled"] == "fail"


def test_a_tag_that_skips_a_cell_is_of_no_use(course):
    folder = plain_courses.hand_in(course, "ps1", "tags", solved=False)
    path = folder / "ps1.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["metadata"]["tags"] = ["skip-execution", "raises-exception"]
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = "5"
    path.write_text(json.dumps(notebook))
    assert grade.grade_student(Course(course), load_assignment(course, "ps1"), folder).score == 0


def test_what_is_forged_in_the_students_own_process_is_shown_to_a_person(course):
    forged = "import builtins\nlen = lambda x: Any()\n" + (
        "class Any:\n    def __eq__(self, other): return True\n"
        "class Stack:\n    def push(self, x): pass\n    def pop(self): return Any()\n"
    )
    record = graded(course, "stack", {"stack": forged})
    (item,) = (item for item in record.items if item.item == "stack_works")
    assert item.status == "pass"  # as nbgrader would have it
    assert item.parts[0].in_process
    assert any("__eq__" in flag for flag in item.flags)
    assert any("builtins" in flag for flag in item.flags)
    assert any("own process" in line for line in record.log)


def test_no_text_of_a_test_comes_back_from_the_students_own_process(course):
    reads = (
        "import inspect\nclass Stack:\n    def push(self, x):\n"
        "        frame = inspect.currentframe().f_back\n"
        "        raise TypeError(str(frame.f_globals.get('In')) + str(x))\n"
    )
    record = graded(course, "stack", {"stack": reads})
    (part,) = record.items[0].parts
    assert part.message == "The test of this cell ended with TypeError."


def test_no_text_of_a_test_comes_back_through_another_cell(course):
    writes = (
        "import inspect\nclass Stack:\n    def push(self, x):\n"
        "        text = inspect.currentframe().f_back.f_code.co_consts\n"
        "        open('found', 'a').write(str(text))\n    def __len__(self): return 1\n"
    )
    tells = "import os\nraise TypeError(open('found').read() if os.path.exists('found') else 'nothing')\n"
    record = graded(course, "stack", {"stack": writes, "functions": tells})
    messages = [part.message for item in record.items for part in item.parts]
    assert messages[1] == f"{RAISED.capitalize()} TypeError on line 2 of your cell: nothing."
    assert not any("secret" in message for message in messages)


def test_a_test_in_the_students_own_process_leaves_nothing_there(course):
    peeks = "def double(x):\n    return 2 * x if 'stack' not in globals() else None\n"
    greet = (
        "import random\ndef greet(name): print(f'Hello, {name}!')\ndef roll(): return random.randint(1, 6)\n"
    )
    assert statuses(graded(course, "stack", {"functions": greet + peeks}))["doubles"] == "pass"


def test_a_package_is_there_only_if_the_course_says_so(course, tmp_path):
    other = fresh(course, tmp_path / "other")
    (other / "solutions" / "course.toml").write_text("")
    assert statuses(graded(other, "tables"))["scaled"] == "error"
    (other / "solutions" / "course.toml").write_text('packages = ["scipy", "scikit-learn"]\n')
    assert statuses(graded(other, "tables"))["scaled"] == "pass"
    (other / "solutions" / "course.toml").write_text('packages = ["no-such-package"]\n')
    with pytest.raises(CourseError, match="no-such-package, which is not installed"):
        settings_of(Course(other)).layout(load_assignment(other, "tables"))


def test_what_a_library_keeps_is_found_out_and_a_tag_says_where_to_test(tmp_path, monkeypatch):
    """The test looks at a state of NumPy that the function has set: no list of names can tell."""
    state = plain_courses.graded(
        "assert strict() and np.geterr()['over'] == 'raise'", "test_strict", points=1
    )
    solution = (
        "### BEGIN SOLUTION\ndef strict():\n    np.seterr(over='raise')\n    return True\n### END SOLUTION"
    )
    cells = [
        plain_courses.given("import numpy as np"),
        plain_courses.graded(solution, "strict", solution=True),
    ]
    monkeypatch.setitem(plain_courses.SOURCES, "state", plain_courses.notebook(*cells, state))
    course = plain_courses.write(tmp_path / "course", "state")
    with np.errstate(), pytest.raises(CourseError, match=r"test_strict .*the tag in-process"):
        reference.check_once(Course(course), load_assignment(course, "state"))
    state.metadata["tags"] = ["in-process"]
    nbformat.write(plain_courses.notebook(*cells, state), course / "solutions" / "state" / "state.ipynb")
    with np.errstate():
        reference.check_once(Course(course), load_assignment(course, "state"))
        record = graded(course, "state")
    assert record.score == 1
    assert record.items[0].parts[0].in_process


RECORDED = """
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    f()
assert len(found) == 1
"""
SEEDED = "np.random.seed(3)\nexpected = np.random.rand()\nnp.random.seed(3)\nassert f() == expected"
BESIDE = {
    "plots": (
        "import matplotlib.pyplot as plt",
        "plt.title('T')",
        "f()\nassert plt.gca().get_title() == 'T'",
    ),
    "warnings": ("import warnings", "warnings.warn('x')", RECORDED),
    "files": ("import math", "open('made', 'w').close()", "f()\nwith open('made') as file: pass"),
    "random": ("import numpy as np", "return np.random.rand()", SEEDED),
    "a very long integer": ("import math", "return math.factorial(2000)", "assert f() % 1999 == 0"),
    "a set": ("import math", "return {1}", "assert f() == {1}"),
    "identity": ("import math", "return X", "assert f() is X"),
    "a name": ("import math", "return 3", "assert f.__name__ == 'f' and f() == 3"),
    "globals": ("import math", "return X", "X = 5\nassert f() == 5"),
    "nothing of the student's": ("import math", "return X", "assert math.pi > 3"),
}


@pytest.mark.parametrize("what", BESIDE)
def test_what_data_does_not_carry_is_tested_in_the_students_process(tmp_path, what):
    given, body, test = BESIDE[what]
    solution = f"def f():\n    ### BEGIN SOLUTION\n    {body}\n    ### END SOLUTION"
    cells = [plain_courses.given(f"{given}\nX = [3]"), plain_courses.graded(solution, "f", solution=True)]
    notebook = plain_courses.notebook(*cells, plain_courses.graded(test, "test_f", points=1))
    _, cells = plain_nbgrader.read("one", notebook, notebook)
    found = plain._tests_of(cells, tmp_path)["f"]
    assert not found.failure
    assert not found.apart


def test_what_only_ipython_reads_and_what_a_solution_imports(tmp_path):
    given = [
        plain_courses.given(text) for text in ("%matplotlib inline\n!ls", "%%bash\nls $HOME", "%%time\nX = 3")
    ]
    solution = "### BEGIN SOLUTION\nimport math\n\n\ndef f(x):\n    return math.sqrt(x)\n### END SOLUTION"
    cells = [*given, plain_courses.graded(solution, "f", solution=True)]
    cells.append(plain_courses.graded("assert f(X * 3) == math.sqrt(9)", "test_f", points=1))
    notebook = plain_courses.notebook(*cells)
    found = plain._tests_of(plain_nbgrader.read("one", notebook, notebook)[1], tmp_path)["f"]
    assert found.apart
    assert (found.functions, found.values) == (("f",), ())


def test_tests_that_cannot_be_graded_are_refused(tmp_path, monkeypatch):
    def refused(words, *cells):
        name = f"odd{len(list(tmp_path.iterdir()))}"
        monkeypatch.setitem(plain_courses.SOURCES, name, plain_courses.notebook(*cells))
        course = plain_courses.write(tmp_path / name, name)
        with pytest.raises(CourseError, match=words):
            reference.check(load_assignment(course, name), b"secret")

    graded = plain_courses.graded
    solution = graded("### BEGIN SOLUTION\ndef f(x):\n    return x\n### END SOLUTION", "f", solution=True)
    test = graded("assert f(2) == 2", "test_f", points=2)
    refused("partial credit", solution, graded("score = f(2)\nscore", "test_f", points=2))
    refused("no solution cell before it", graded("assert f(2) == 2", "test_f", points=2), solution)
    refused("test_f: AssertionError", solution, graded("assert f(2) == 3", "test_f", points=2))
    refused("of the solutions raised NameError", graded("nowhere", "g", solution=True), solution, test)
    refused("not Python", solution, graded("assert f(2 ==", "test_f", points=2))
