"""From a text source to the instructor's notebook and the released one, and every way a source can be wrong."""

import inspect
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbgrader.api import Gradebook

from mha_grader.course.authoring import (
    SourceError,
    assignments,
    build,
    check,
    given_source,
    instructor_notebook,
    main,
    mark_bodies,
    read_parts,
    release,
    rename,
    solution_source,
    split_test,
)
from mha_grader.grading.runner import load_parts
from mha_lib.attention import attention, softmax
from mha_lib.masks import causal_mask
from mha_lib.pitfalls import variants

ROOT = Path(__file__).parents[3]

HEAD = """\
# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: demo, version: "1.2"}
# ---
"""
AUTHOR = """
# %% role="author"
from mha_grader.testing.testing import expect, part
"""
INTRO = """
# %% [markdown] id="intro"
# # Demo
#
# `softmax` is worth {points softmax} of {points}.
"""
GIVEN = """
# %% role="given" id="imports"
import numpy as np
"""
SHOW = """
# %% role="show" id="plot"
print(softmax(np.zeros(2)))
"""
SOLUTION = """
# %% role="solution" item="softmax"
from mha_lib.attention import softmax
"""
TEST = """
# %% role="test" item="softmax"
assert softmax(np.zeros(2))[0] == 0.5
### BEGIN HIDDEN TESTS


@part(points=2)
def values(rng):
    "The values."


@part(points=0.5, needs="values")
def shape(rng):
    "The shape."


### END HIDDEN TESTS
"""
ANSWERS = """
# %% role="solution" item="answers"
answers = {
    "width": None,  # a number
}
### BEGIN SOLUTION
answers = {"width": 64}
### END SOLUTION

# %% role="test" item="answers"
print(answers)
### BEGIN HIDDEN TESTS


@part(points=1)
def width(rng):
    "The width."
    expect(answers["width"] == 64, "no")


### END HIDDEN TESTS
"""
DEMO = HEAD + AUTHOR + INTRO + GIVEN + SOLUTION + TEST + SHOW + ANSWERS


def make_course(folder):
    (folder / "solutions").mkdir()
    (folder / "solutions" / "demo.py").write_text(DEMO)
    (folder / "solutions" / "checks.py").write_text("LIMIT = 3\n")
    shutil.copyfile(ROOT / "nbgrader_config.py", folder / "nbgrader_config.py")
    return folder


@pytest.fixture
def course(tmp_path):
    """A course with the one assignment `demo`, not yet generated."""
    return make_course(tmp_path)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The same, released. Only to be looked at."""
    course = make_course(tmp_path_factory.mktemp("released"))
    release(course, "demo")
    return course


def cells_of(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}


def notebook_of(tmp_path, text):
    (tmp_path / "demo.py").write_text(text)
    return instructor_notebook(tmp_path / "demo.py")


# The instructor's notebook


def test_the_instructors_notebook_has_every_cell_but_the_authors_under_its_grade_id(course):
    cells = cells_of(build(course, "demo"))
    assert list(cells) == ["intro", "imports", "softmax", "test_softmax", "plot", "answers", "test_answers"]
    assert all(cell.metadata.nbgrader.grade_id == grade_id for grade_id, cell in cells.items())
    assert all(cell.cell_type == "markdown" or cell.outputs == [] for cell in cells.values())


@pytest.mark.parametrize(
    ("grade_id", "grade", "solution", "locked", "tags"),
    [
        ("intro", False, False, True, None),
        ("imports", False, False, True, ["given"]),
        ("softmax", False, True, False, None),
        ("test_softmax", True, False, True, ["raises-exception"]),
        ("plot", False, False, True, ["show", "raises-exception"]),
    ],
)
def test_nbgrader_is_told_what_each_cell_is(course, grade_id, grade, solution, locked, tags):
    cell = cells_of(build(course, "demo"))[grade_id]
    nbgrader = cell.metadata.nbgrader
    assert (nbgrader.grade, nbgrader.solution, nbgrader.locked) == (grade, solution, locked)
    assert cell.metadata.get("tags") == tags


def test_points_are_the_sum_over_the_parts_and_stand_in_the_text(course):
    cells = cells_of(build(course, "demo"))
    assert cells["test_softmax"].metadata.nbgrader.points == 2.5
    assert "`softmax` is worth 2.5 of 3.5." in cells["intro"].source


def test_a_solution_cell_is_the_librarys_own_source_between_markers(course):
    source = cells_of(build(course, "demo"))["softmax"].source
    assert source.count("### BEGIN SOLUTION") == source.count("### END SOLUTION") == 1
    lines = [line for line in source.splitlines() if "### " not in line]
    assert "\n".join(lines) == inspect.getsource(softmax).rstrip()
    signature = source.partition("### BEGIN SOLUTION")[0]
    assert signature.rstrip().endswith('"""')
    assert "np.exp" not in signature


def test_a_given_cell_of_imports_is_the_librarys_own_source(tmp_path):
    imports = "from mha_lib.attention import softmax, attention\nfrom mha_lib.masks import causal_mask\n"
    cell = notebook_of(tmp_path, DEMO + f'\n# %% role="given" id="earlier"\n{imports}').cells[-1]
    functions = (softmax, attention, causal_mask)
    assert cell.source == "\n\n".join(map(inspect.getsource, functions)).rstrip()
    assert cell.metadata.tags == ["given"]
    assert not cell.metadata.nbgrader.solution


def test_the_same_source_gives_the_same_bytes(course):
    first = build(course, "demo").read_bytes()
    assert build(course, "demo").read_bytes() == first


def test_the_stamp_says_assignment_version_and_digest_where_people_and_programs_look(course):
    notebook = nbformat.read(build(course, "demo"), as_version=4)
    stamp = notebook.metadata.mha
    assert (stamp.assignment, stamp.version, len(stamp.digest)) == ("demo", "1.2", 12)
    assert f"*Assignment `demo`, version 1.2 ({stamp.digest}).*" in notebook.cells[0].source


def test_the_digest_changes_with_a_hidden_test_and_not_with_the_stamp(tmp_path):
    digest = notebook_of(tmp_path, DEMO).metadata.mha.digest
    assert notebook_of(tmp_path, DEMO.replace('"The shape."', '"Its shape."')).metadata.mha.digest != digest
    assert notebook_of(tmp_path, DEMO.replace('"1.2"', '"1.3"')).metadata.mha.digest == digest


def test_helpers_lie_beside_the_notebook_and_nothing_else_does(course):
    folder = build(course, "demo").parent
    (folder / "old_solutions.txt").write_text("secret")
    build(course, "demo")
    assert sorted(path.name for path in folder.iterdir()) == ["checks.py", "demo.ipynb"]


def test_files_of_the_package_that_the_head_names_lie_beside_the_notebook_too(course):
    source = course / "solutions" / "demo.py"
    source.write_text(DEMO.replace('version: "1.2"', 'version: "1.2", files: [heads.py]'))
    folder = build(course, "demo").parent
    assert sorted(path.name for path in folder.iterdir()) == ["checks.py", "demo.ipynb", "heads.py"]
    assert (folder / "heads.py").read_bytes() == (ROOT / "mha_lib" / "heads.py").read_bytes()


def test_every_source_but_the_helpers_is_an_assignment(course):
    assert assignments(course) == ["demo"]


# The released notebook


def test_a_release_has_stubs_and_no_hidden_test(released):
    folder = released / "exercises" / "demo"
    assert sorted(path.name for path in folder.iterdir()) == ["checks.py", "demo.ipynb"]
    cells = cells_of(folder / "demo.ipynb")
    assert cells["softmax"].source.endswith('"""\n    # YOUR CODE HERE\n    raise NotImplementedError()')
    assert cells["test_softmax"].source == "assert softmax(np.zeros(2))[0] == 0.5"
    text = (folder / "demo.ipynb").read_text()
    assert "BEGIN" not in text
    assert "np.exp" not in text


def test_a_stub_of_answers_is_what_the_student_starts_from_so_that_the_cells_below_run(released):
    cells = cells_of(released / "exercises" / "demo" / "demo.ipynb")
    namespace = {}
    exec(cells["answers"].source, namespace)
    assert namespace["answers"] == {"width": None}
    assert cells["answers"].source.endswith("}")


def test_a_release_is_recorded_in_the_gradebook(released):
    with Gradebook(f"sqlite:///{released / 'gradebook.db'}") as gradebook:
        scores = {cell.name: cell.max_score for cell in gradebook.find_notebook("demo", "demo").grade_cells}
    assert scores == {"test_softmax": 2.5, "test_answers": 1.0}


def test_both_notebooks_carry_the_same_stamp(released):
    stamps = [
        json.loads((released / room / "demo" / "demo.ipynb").read_text())["metadata"]["mha"]
        for room in ("solutions", "exercises")
    ]
    assert stamps[0] == stamps[1]


def test_a_release_has_the_same_bytes_on_the_same_and_on_a_fresh_gradebook(course):
    notebook = release(course, "demo") / "demo.ipynb"
    first = notebook.read_bytes()
    release(course, "demo")
    assert notebook.read_bytes() == first
    (course / "gradebook.db").unlink()
    release(course, "demo")
    assert notebook.read_bytes() == first


# The check


def snapshot(folder):
    return {
        path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")
    }


def test_the_check_is_content_with_what_was_just_released(course):
    release(course, "demo")
    (course / "exercises" / "demo" / ".ipynb_checkpoints").mkdir()
    (course / "exercises" / "demo" / ".ipynb_checkpoints" / "demo.ipynb").write_text("left by Jupyter")
    assert check(course) == []


def test_the_check_names_what_differs_is_missing_or_left_over_and_touches_nothing(course):
    folder = release(course, "demo")
    (folder / "demo.ipynb").write_text("{}")
    (folder / "checks.py").unlink()
    (course / "exercises" / "old").mkdir()
    (course / "exercises" / "old" / "old.ipynb").write_text("{}")
    (course / "gradebook.db").unlink()
    before = snapshot(course)
    assert check(course) == [
        "exercises/demo/checks.py is missing",
        "exercises/demo/demo.ipynb differs from what solutions/ generates",
        "exercises/old/old.ipynb is not generated by anything in solutions/",
    ]
    assert snapshot(course) == before


def test_the_check_of_one_assignment_looks_at_no_other(course):
    release(course, "demo")
    (course / "exercises" / "old").mkdir()
    (course / "exercises" / "old" / "old.ipynb").write_text("{}")
    assert check(course, ["demo"]) == []


def test_the_courses_own_exercises_are_what_its_solutions_generate():
    assert check(ROOT) == []


# The command line


def test_the_command_releases_and_checks(course, monkeypatch, capsys):
    monkeypatch.chdir(course)
    assert main(["--check"]) == 1
    assert "exercises/demo/demo.ipynb is missing" in capsys.readouterr().out
    assert main([]) == 0
    assert capsys.readouterr().out.split() == ["exercises/demo"]
    assert main(["--check", "demo"]) == 0


def test_the_command_says_what_is_wrong_with_a_source(course, monkeypatch, capsys):
    monkeypatch.chdir(course)
    assert main(["nothing"]) == 1
    assert "nothing.py" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # from nbgrader's own gradebook
def test_the_command_says_why_nbgrader_refuses(course, monkeypatch, caplog, capsys):
    monkeypatch.chdir(course)
    release(course, "demo")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.add_student("anna")
        gradebook.add_submission("demo", "anna")
    (course / "solutions" / "demo.py").write_text(DEMO.replace(ANSWERS, ""))
    assert main([]) == 1
    assert "there are submissions associated with it" in caplog.text
    assert "Please see" in capsys.readouterr().err


# Sources that are wrong

WRONG = {
    "no head": (DEMO.replace(HEAD, ""), "its head should say mha: {assignment: demo"),
    "another name": (DEMO.replace("assignment: demo", "assignment: dome"), "its head should say"),
    "a version that is no text": (DEMO.replace('"1.2"', "1.2"), "its head should say"),
    "unknown role": (
        DEMO.replace('role="given"', 'role="shown"'),
        "role is 'shown', but it should be one of",
    ),
    "no role": (DEMO.replace('# %% role="given" id="imports"', "# %%"), "role is None"),
    "no id": (DEMO.replace(' id="imports"', ""), 'it needs id="…"'),
    "a bad id": (DEMO.replace('id="imports"', 'id="the imports"'), 'it needs id="…"'),
    "no item": (DEMO.replace('role="test" item="softmax"', 'role="test"'), 'it needs item="…"'),
    "an id twice": (DEMO.replace('id="plot"', 'id="imports"'), "two cells have the id 'imports'"),
    "an item without test": (DEMO.replace(TEST, ""), "item 'softmax' has no test"),
    "a test without item": (DEMO.replace(SOLUTION, ""), "the test of 'softmax' has no solution cell"),
    "a test before its item": (
        HEAD + INTRO + TEST + SOLUTION,
        "the test of 'softmax' stands before its solution cell",
    ),
    "no text first": (DEMO.replace(INTRO, ""), "the first cell should be text"),
    "points of nothing": (DEMO.replace("{points softmax}", "{points soft}"), "there is no item 'soft'"),
    "another import": (
        DEMO.replace("import softmax", "import attention"),
        "from mha_lib.attention import softmax",
    ),
    "an import under another name": (
        DEMO.replace("import softmax", "import softmax as s"),
        "its import should be",
    ),
    "tests borrowed from nowhere": (
        DEMO.replace('role="test" item="softmax"', 'role="test" item="softmax" borrow="demo.softmin"'),
        "no item demo.softmin",
    ),
    "tests borrowed without a name": (
        DEMO.replace('role="test" item="softmax"', 'role="test" item="softmax" borrow="softmax"'),
        "assignment.item",
    ),
    "a share of nothing": (
        DEMO.replace(
            'role="test" item="softmax"', 'role="test" item="softmax" borrow="demo.softmax" share=0'
        ),
        "a positive number",
    ),
    "a checker without points": (
        DEMO.replace(
            "@part(points=0.5",
            'parts = checker_parts(softmax, "single_head.softmax", right=1)\n@part(points=1',
        ),
        "right=…, each=…",
    ),
    "questions without points": (
        DEMO.replace("@part(points=0.5", 'parts = part_for_each(check, proves={"a": "b"})\n@part(points=1'),
        "points=… as a number",
    ),
    "questions that are not written out": (
        DEMO.replace(
            "@part(points=0.5", "parts = part_for_each(check, points=1, proves=text)\n@part(points=1"
        ),
        "proves=… as a dict",
    ),
    "an import of nothing": (DEMO.replace("softmax", "softmix"), "mha_lib.attention has no softmix"),
    "a given import of nothing": (
        DEMO.replace("import numpy as np", "from mha_lib.masks import mask"),
        "mha_lib.masks has no mask",
    ),
    "a given import beside other code": (
        DEMO.replace("import numpy as np", "import numpy as np\nfrom mha_lib.masks import causal_mask"),
        "a given cell with imports from mha_lib should hold nothing else",
    ),
    "a solution without markers": (
        DEMO.replace("### BEGIN SOLUTION\n", "").replace("### END SOLUTION\n", ""),
        "it should be one import, or hold ### BEGIN SOLUTION",
    ),
    "a solution without end": (DEMO.replace("### END SOLUTION\n", ""), "it should be one import, or hold"),
    "another name defined": (DEMO.replace("answers = {", "replies = {"), "it does not define answers"),
    "no hidden tests": (
        DEMO[: DEMO.index("### BEGIN HIDDEN")] + SHOW + ANSWERS,
        "it should end in one hidden block",
    ),
    "visible code below the hidden tests": (
        DEMO.replace("### END HIDDEN TESTS\n" + SHOW, "### END HIDDEN TESTS\nprint()\n" + SHOW),
        "it should end in one hidden block",
    ),
    "no visible check": (
        DEMO.replace("assert softmax(np.zeros(2))[0] == 0.5\n", ""),
        "it has no visible checks",
    ),
    "no part": (DEMO.replace("@part(points=1)\n", ""), "its hidden block has no part"),
    "points that are not literal": (
        DEMO.replace("points=2", "points=len('ab')"),
        "part 'values' needs points=…",
    ),
    "points of 0": (DEMO.replace("points=2", "points=0"), "part 'values' needs points=…"),
    "no points": (DEMO.replace("points=2", ""), "part 'values' needs points=…"),
    "a part without docstring": (DEMO.replace('"The values."', "pass"), "part 'values' has no docstring"),
    "a part twice": (DEMO.replace("def shape", "def values"), "two parts are called 'values'"),
    "an unknown need": (DEMO.replace('needs="values"', 'needs="value"'), "part 'shape' needs 'value'"),
    "a hidden test that is no Python": (DEMO.replace("def shape(rng)", "def shape(rng"), "line "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_source_is_refused_in_words(tmp_path, case):
    text, words = WRONG[case]
    assert text != DEMO
    with pytest.raises(SourceError) as caught:
        notebook_of(tmp_path, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("demo.py")


def test_an_error_names_the_cell(tmp_path):
    with pytest.raises(SourceError, match=r"demo\.py, cell 5 \(test softmax\): part 'values'"):
        notebook_of(tmp_path, DEMO.replace("points=2", "points=-1"))


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"there is no .*demo\.py"):
        instructor_notebook(tmp_path / "demo.py")


# Bodies

CLASS = '''\
class Layer(nn.Module):
    """Doc."""

    width: int = 3

    # What it needs.
    def __init__(self, width):
        # the first comment
        super().__init__()
        self.width = width
        # the last comment

    @property
    def half(self):
        """Half."""

        return self.width / 2
'''
MARKED_CLASS = '''\
class Layer(nn.Module):
    """Doc."""

    width: int = 3

    # What it needs.
    def __init__(self, width):
        ### BEGIN SOLUTION
        # the first comment
        super().__init__()
        self.width = width
        # the last comment
        ### END SOLUTION

    @property
    def half(self):
        """Half."""
        ### BEGIN SOLUTION

        return self.width / 2
        ### END SOLUTION'''


def test_in_a_class_the_body_of_each_method_is_the_solution():
    assert mark_bodies(CLASS) == MARKED_CLASS


def test_a_decorated_first_statement_is_part_of_the_solution():
    text = "def f(x):\n    @cache\n    def g():\n        return x\n    return g()\n"
    assert mark_bodies(text).splitlines()[1:3] == ["    ### BEGIN SOLUTION", "    @cache"]


def test_a_signature_over_several_lines_stays():
    text = "def f(\n    x,\n):\n    # why\n    return x\n"
    assert mark_bodies(text).splitlines()[:4] == ["def f(", "    x,", "):", "    ### BEGIN SOLUTION"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x): return x\n", "should start on a line of its own"),
        ('def f(x):\n    """Doc."""\n', "no body below its docstring"),
    ],
)
def test_a_body_that_cannot_be_taken_out_is_refused(text, words):
    with pytest.raises(SourceError, match=words):
        mark_bodies(text)


def test_a_solution_may_be_written_out_inside_a_function():
    text = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    assert solution_source(text, "f") == text


def test_a_test_cell_is_split_at_its_marker():
    visible, hidden = split_test("check()\n\n### BEGIN HIDDEN TESTS\n\npart()\n### END HIDDEN TESTS\n")
    assert (visible, hidden) == ("check()", "part()")


def test_a_part_may_need_several_and_helpers_are_no_parts():
    hidden = (
        'def helper(): ...\n@part(points=1)\ndef a(rng): "A."\n@part(points=2.5)\ndef b(rng): "B."\n'
        '@part(points=3, needs=("a", "b"))\ndef c(rng): "C."\n'
    )
    assert [(part.name, part.points) for part in read_parts(hidden)] == [("a", 1.0), ("b", 2.5), ("c", 3.0)]


# Pieces of other assignments


def test_a_name_is_replaced_where_it_is_a_name_and_where_text_calls_it():
    source = 'def f(f_, g=1):\n    """f of\n    f(3) and sf(3)."""\n    return f(x.f) + sf  # f\n'
    assert rename(source, "f", "new") == (
        'def new(f_, g=1):\n    """f of\n    new(3) and sf(3)."""\n    return new(x.new) + sf  # f\n'
    )


def test_a_library_function_may_come_under_another_name():
    made = solution_source("from mha_lib.attention import softmax as mended", "mended")
    expected = mark_bodies(inspect.getsource(softmax)).replace("softmax(", "mended(")
    assert made.rstrip() == expected


def test_a_wrong_variant_comes_without_the_words_that_tell_what_is_wrong():
    made = given_source(
        "from mha_lib.pitfalls.code.single_head.attention import attention_no_scale as broken"
    )
    assert made.startswith("def broken(")
    assert "Wrong" not in made
    assert '"""' not in made
    compile(made, "made", "exec")


BORROWER = (
    (HEAD + AUTHOR + INTRO + GIVEN).replace("demo", "borrower").replace("softmax", "mended")
    + """
# %% role="solution" item="mended"
from mha_lib.attention import softmax as mended

# %% role="test" item="mended" borrow="demo.softmax" share=0.5
print(mended(np.zeros(2)))
### BEGIN HIDDEN TESTS


@part(points=1)
def ground(rng):
    "What the others rest on."


### END HIDDEN TESTS
"""
)


def test_hidden_tests_are_borrowed_with_their_points_shared(tmp_path):
    test = TEST.replace('"The values."', '"The values."\n    expect(softmax(rng.normal(size=2)), "no")')
    (tmp_path / "demo.py").write_text(DEMO.replace(TEST, test))
    (tmp_path / "borrower.py").write_text(BORROWER)
    notebook = instructor_notebook(tmp_path / "borrower.py")
    cell = next(cell for cell in notebook.cells if cell.id == "test_mended")
    visible, hidden = split_test(cell.source)
    assert visible == "print(mended(np.zeros(2)))"
    assert "expect(mended(rng.normal(size=2))" in hidden
    assert cell.metadata.nbgrader.points == 2.25
    assert [part.points for part in read_parts(hidden)] == [1, 1, 0.25]
    parts = load_parts(hidden, {"mended": None}, SimpleNamespace())
    assert [part.needs for part in parts] == [(), ("ground",), ("values",)]


def test_a_part_for_each_question_is_counted():
    hidden = 'parts = part_for_each(check, points=1.5, proves={"why": "What follows.", "how": "How."})'
    assert [(part.name, part.points) for part in read_parts(hidden)] == [("why", 1.5), ("how", 1.5)]
    parts = load_parts("def check(question): pass\n" + hidden, {}, SimpleNamespace())
    assert [(part.name, part.points) for part in parts] == [("why", 1.5), ("how", 1.5)]


def test_a_checkers_parts_are_counted():
    parts = read_parts('parts = checker_parts(check, "single_head.causal_mask", right=3, each=0.5)')
    wrong = len(variants("single_head", "causal_mask"))
    assert sum(part.points for part in parts) == 3 + 0.5 * wrong
