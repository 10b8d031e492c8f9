"""From a text source to the instructor's notebook, and every way a source can be wrong."""

import inspect
from types import SimpleNamespace

import nbformat
import pytest

from mha_grader.course import notebooks
from mha_grader.course.authoring import build
from mha_grader.course.notebooks import instructor_notebook
from mha_grader.course.sources import SourceError, read_parts, split_test
from mha_grader.grading.judge import load_parts
from mha_lib.attention import softmax
from tests.mha_grader.course.demo_course import (
    ANSWERS,
    AUTHOR,
    DEMO,
    GIVEN,
    HEAD,
    INTRO,
    ROOT,
    SHOW,
    SOLUTION,
    TEST,
    cells_of,
)


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


def test_the_same_source_gives_the_same_bytes(course):
    first = build(course, "demo").read_bytes()
    assert build(course, "demo").read_bytes() == first


def test_the_stamp_says_assignment_version_and_digest_where_people_and_programs_look(course):
    notebook = nbformat.read(build(course, "demo"), as_version=4)
    stamp = notebook.metadata.mha
    assert (stamp.assignment, stamp.version, len(stamp.digest)) == ("demo", "1.2", 12)
    assert f"*Assignment `demo`, version 1.2 ({stamp.digest}).*" in notebook.cells[0].source


def test_the_digest_changes_with_given_code_that_lies_beside_the_notebook(tmp_path, monkeypatch):
    digests = set()
    for code in ("", "def half(x): ...", "def half(x): return x / 2"):
        monkeypatch.setattr(notebooks, "given_code", lambda source, code=code: code)
        digests.add(notebook_of(tmp_path, DEMO).metadata.mha.digest)
    assert len(digests) == 3


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
    "no part": (DEMO.replace("@part(points=1)\n", ""), "the hidden test defines no part"),
    "points that are not literal": (
        DEMO.replace("points=2", "points=len('ab')"),
        "part 'values' needs points=…",
    ),
    "points below 0": (DEMO.replace("points=2", "points=-1"), "part 'values' needs points=…"),
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


ANSWER = """
# %% [markdown] role="answer" item="why"
# Since.
"""


@pytest.mark.parametrize(
    ("text", "rubric", "words"),
    [
        (ANSWER, "", "cell 6 (answer why): the answer why has no rubric"),
        ("", "[why]\ncriteria = [[1, 'a']]", "a rubric of 'why', but there is no such answer"),
        (ANSWER.replace(' item="why"', ""), "", "(answer): an answer is a [markdown] cell with item="),
        (ANSWER.replace(" [markdown]", "").replace("# S", "S"), "", "an answer is a [markdown] cell"),
        (ANSWER.replace("Since", "{criteria wy}"), "[why]\ncriteria = [[1, 'a']]", "no rubric of 'wy'"),
    ],
)
def test_an_answer_and_its_rubric_belong_together(tmp_path, text, rubric, words):
    (tmp_path / "demo_rubric.toml").write_text(rubric)
    with pytest.raises(SourceError) as caught:
        notebook_of(tmp_path, HEAD + AUTHOR + INTRO + GIVEN + SOLUTION + TEST + text)
    assert words in str(caught.value)


def test_an_error_names_the_cell(tmp_path):
    with pytest.raises(SourceError, match=r"demo\.py, cell 5 \(test softmax\): part 'values'"):
        notebook_of(tmp_path, DEMO.replace("points=2", "points=-1"))


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(SourceError, match=r"there is no .*demo\.py"):
        instructor_notebook(tmp_path / "demo.py")


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
