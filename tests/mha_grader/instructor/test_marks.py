"""What a person marks: from the rubric to the exports, with nbgrader's own manual grading between."""

import csv
import json
import re
import shutil

import nbformat
import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.commands import marks
from mha_grader.course import rubric
from mha_grader.course.errors import CourseError
from mha_grader.course.folders import Course
from mha_grader.grading import schedule
from mha_grader.instructor import gradebook
from mha_grader.instructor.nbgrader_internals import inert_markdown
from tests.mha_grader.small_course import ASKED, NAME, RUBRIC, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, of many kinds

TEXT = "Since $4x/2 < 4x$ & **so on**.\n\n* äöü <b>"
MODEL = "says the model"


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr(schedule, "FEW", 1000)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """ann wrote, bob did not, cy handed in no notebook, dan wrote beside the cell."""
    course = make(tmp_path_factory.mktemp("marks") / "course", asked=ASKED)
    hand_in(course, "ann", why=TEXT)
    hand_in(course, "bob", half="def half(x):\n    return x\n")
    (hand_in(course, "cy") / f"{NAME}.ipynb").write_text("nothing")
    path = hand_in(course, "dan") / f"{NAME}.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "Beside.", "id": "own"})
    path.write_text(json.dumps(notebook))
    return course


def run(course, *arguments):
    return cli.main(["--course", str(course), *arguments])


def mark(course, student, points, comment=""):
    """Enter a mark as formgrader does (nbgrader, server_extensions/formgrader/apihandlers.py)."""
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        grade = book.find_grade("why", NAME, NAME, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        book.find_comment("why", NAME, NAME, student).manual_comment = comment
        book.db.commit()


def waits(course, student):
    """Whether formgrader shows the answer among those that need manual grading."""
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        return book.find_grade("why", NAME, NAME, student).needs_manual_grade


def exported(course):
    with (course / "grades" / f"{NAME}.csv").open(newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def page(course, student):
    return (course / "feedback" / student / NAME / f"{NAME}.html").read_text()


def released(course):
    return {cell.id: cell for cell in nbformat.read(course / "exercises" / NAME / f"{NAME}.ipynb", 4).cells}


def test_students_read_the_question_and_the_criteria_and_not_the_model_answer(course):
    cells = released(course)
    assert "2.5 points of 5.8:\n\n* 2 points: a reason\n* 0.5 points: an example" in cells["why_text"].source
    assert cells["why"].source == "YOUR ANSWER HERE"
    assert MODEL not in nbformat.writes(nbformat.v4.new_notebook(cells=list(cells.values())))


def test_a_class_from_its_hand_ins_to_its_grades(course, capsys):
    assert run(course, "grade", NAME) == 0
    out = capsys.readouterr().out
    assert "? not final: a person has yet to mark it (mha-grade marks small)" in out
    table = {
        line.split()[0]: line.split() for line in out.splitlines() if line[:3] in ("ann", "bob", "cy ", "dan")
    }
    assert table["ann"][1:5] == ["3.3?", "0.3", "3", "?"]
    assert table["bob"][1:5] == ["0.3", "0.3", "0", "0"]  # nothing written: no person is needed
    assert [waits(course, student) for student in ("ann", "bob", "cy", "dan")] == [True, False, False, True]

    # The person sees the text as it was written, what earns points, comments and the model answer.
    graded = nbformat.read(course / "autograded" / "ann" / NAME / f"{NAME}.ipynb", 4)
    ids = [cell.id for cell in graded.cells]
    answer, above = graded.cells[ids.index("why")], graded.cells[ids.index("why") - 1]
    assert answer.source == TEXT
    assert answer.metadata == released(course)["why"].metadata
    for words in ("Show it for $x < 0$, too.", MODEL):
        assert words in above.source
    theirs = nbformat.read(course / "autograded" / "dan" / NAME / f"{NAME}.ipynb", 4)
    assert [cell.source for cell in theirs.cells if cell.id == "why"] == ["Beside."]

    # Nothing looks final that is not.
    assert run(course, "export", NAME) == 0
    assert "2 of 4 are not fully marked" in capsys.readouterr().err
    rows = exported(course)
    assert [rows["ann"][name] for name in ("score", "max_score", "why", "not_marked", "final_score")] == [
        "3.3",
        "5.8",
        "",
        "why",
        "",
    ]
    assert [rows["bob"][name] for name in ("why", "not_marked", "final_score")] == ["0", "", "0.3"]
    moodle = (course / "grades" / f"{NAME}-moodle.csv").read_text()
    assert ',ann,,,5.8,,"double 0.3/0.3, half 3/3, why not marked yet/2.5"' in moodle
    assert run(course, "feedback", NAME) == 0
    assert "3.3 of 5.8 points so far" in page(course, "ann")
    assert "A person has yet to mark <code>why</code>" in page(course, "ann")
    assert "yet to mark" not in page(course, "bob")
    assert run(course, "report", NAME) == 0
    assert "why: not marked yet" in (course / "grades" / f"{NAME}-report.html").read_text()
    capsys.readouterr()
    assert run(course, "marks", NAME, "--assistants", "zoe", "eve") == 0
    assert capsys.readouterr().out.splitlines() == [
        "small: 2 of 2 answers wait for a person, in 2 hand-ins",
        "",
        "eve (2)",
        "  ann",
        "    why: not marked yet",
        "  cy",
        "    could not be graded (not-json): the file is not a notebook (not JSON): save it in Jupyter and hand "
        "that file in",
        "",
        "zoe (1)",
        "  dan",
        "    why: not marked yet",
    ]

    # The mark counts, and reaches everybody.
    mark(course, "ann", 1.5, "Show it for <x>, too.")
    assert run(course, "export", NAME) == 0
    ann = exported(course)["ann"]
    assert [ann[name] for name in ("why", "not_marked", "by_hand", "final_score")] == ["1.5", "", "", "4.8"]
    assert run(course, "feedback", NAME) == 0
    assert "4.8 of 5.8 points</p>" in page(course, "ann")
    for words in ("Show it for &lt;x&gt;, too.", "2: a reason", "äöü &lt;b&gt;", "1.5 / 2.5"):
        assert words in page(course, "ann")
    assert MODEL not in page(course, "ann")
    capsys.readouterr()
    assert run(course, "log", NAME, "ann") == 0
    assert "why: 1.5 of 2.5, by a person" in capsys.readouterr().out

    # It stands when the same text comes again, and is looked at again when another one comes.
    hand_in(course, "ann", half="def half(x):\n    return x\n", why=TEXT)
    assert run(course, "grade", NAME, "--force") == 0
    assert not waits(course, "ann")
    entry = gradebook.read(Course(course), NAME)["ann"]
    assert (entry.by_hand, entry.comments) == ({"why": 1.5}, {"why": "Show it for <x>, too."})
    hand_in(course, "ann", why="Something else.")
    capsys.readouterr()
    assert run(course, "grade", NAME) == 0
    assert "why changed since it was marked" in capsys.readouterr().out
    for _ in range(2):  # until a person has looked
        assert waits(course, "ann")
        assert gradebook.read(Course(course), NAME)["ann"].by_hand == {"why": 1.5}
        assert run(course, "grade", NAME, "--force") == 0
    assert run(course, "export", NAME) == 0
    assert [exported(course)["ann"][name] for name in ("not_marked", "final_score")] == ["why", ""]
    mark(course, "ann", 2)
    assert run(course, "grade", NAME, "--force") == 0
    assert not waits(course, "ann")

    # Cells that were added below an answer are part of it. A picture is not passed on, and the page says so.
    path = (
        hand_in(course, "ann", why="See ![what I drew](attachment:drawn.png) and the cell below.")
        / f"{NAME}.ipynb"
    )
    text = path.read_text()
    for source, is_new in (("half(2)", True), ("half(2)", False), ("half(3)", True)):
        notebook = json.loads(text)
        new = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "id": "own"}
        notebook["cells"].append(new | {"source": source})
        path.write_text(json.dumps(notebook))
        assert run(course, "grade", NAME, "--force") == 0
        assert waits(course, "ann") is is_new
        mark(course, "ann", 2)
    assert run(course, "feedback", NAME) == 0
    assert "Pictures in why are not passed on" in page(course, "ann")


def test_shares_stay_as_they_are_whoever_hands_in_or_is_marked_and_differ_by_one_at_most():
    students = [f"s{number:02}" for number in range(11)]
    shares = marks.deal(students, ["eve", "zoe", "ada"])
    assert shares == marks.deal(students[::-1], ["ada", "eve", "zoe", "eve"])
    assert sorted(map(len, shares.values())) == [3, 4, 4]
    assert sorted(each for share in shares.values() for each in share) == students


HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "![x](https://example.org/pixel)",
    "[x](javascript:alert(1))",
    '<a href="jAvascript:alert(1)">x</a>',
    "<svg/onload=alert(1)>",
    '<details open ontoggle="alert(1)">x</details>',
    '<p style="background: url(https://example.org/pixel)">x</p>',
    "```\n<script>alert(1)</script>\n```",
    "$<script>alert(1)</script>$",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>p { background: url(https://example.org/pixel) }</style>",
]


def test_what_a_student_wrote_does_nothing_in_formgrader(chromium):
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message) or dialog.dismiss())
    page.set_content("".join(inert_markdown(f"Before **bold**\n\n{text}\n\nbehind") for text in HOSTILE))
    for link in page.locator("a").all():
        link.click()
    assert asked == []
    assert page.inner_text("body").count("Before bold") == len(HOSTILE)
    page.close()


@pytest.mark.parametrize(
    "text",
    [
        '<div class="full-credit">x</div>',
        '<span class="comment">x</span>',
        '<div class="highlight full-credit">x</div>',
        '<p class="navbar-fixed-top" id="totals" name="x" style="color: red" data-toggle="modal">x</p>',
    ],
)
def test_nothing_that_formgrader_acts_on_stays(text):
    html = inert_markdown(f"before\n\n{text}\n\nbehind")
    assert "x" in html
    assert re.findall(r"(class|id|name|style|data-\w+)=", html) == []


@pytest.mark.parametrize(
    "text",
    [
        "![what I drew](attachment:a.png)",
        "![what I drew][a]\n\n[a]: attachment:a.png",
        "![what I drew](a.png)",
    ],
)
def test_a_picture_is_words(text):
    assert inert_markdown(text) == "<p>[picture: what I drew]</p>\n"


def test_code_in_an_answer_keeps_its_colours():
    html = inert_markdown("```python\nfor x in range(3):\n    print(x)\n```")
    assert '<div class="highlight">' in html
    assert '<span class="k">for</span>' in html


def test_the_words_of_an_answer_stay():
    html = inert_markdown(
        "# A\n\n1. *b*\n\n| c | d |\n|---|---|\n| `e` | $f < g$ |\n\n[h](https://example.org)"
    )
    for piece in (
        "<h1",
        "<ol>",
        "<em>b</em>",
        "<table>",
        "<code>e</code>",
        "$f &lt; g$",
        'href="https://example.org"',
    ):
        assert piece in html


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[why", "is not TOML"),
        ("why = 3", "each item should have"),
        ("[why]\ncomments = []", "each item should have"),
        ("[why]\ncriteria = []", "each item should have"),
        ('[why]\ncriteria = [["a", 2]]', "each item should have"),
        ('[why]\ncriteria = [[0, "a"]]', "each item should have"),
        ('[why]\ncriteria = [[true, "a"]]', "each item should have"),
        ('[why]\ncriteria = [[1, "a"]]\ncomment = ["b"]', "each item should have"),
    ],
)
def test_a_rubric_that_is_wrong_is_named(tmp_path, text, words):
    (tmp_path / "a_rubric.toml").write_text(text)
    with pytest.raises(CourseError, match=words):
        rubric.read(tmp_path, "a")


def test_a_rubric_with_other_points_than_the_released_notebook_is_named(course, capsys):
    path = course / "solutions" / f"{NAME}_rubric.toml"
    path.write_text(RUBRIC.replace("[2,", "[3,"))
    try:
        assert run(course, "grade", NAME) == 1
        assert "gives why 3.5 points, and the notebook 2.5" in capsys.readouterr().err
    finally:
        path.write_text(RUBRIC)


def test_nothing_is_left_of_a_student_who_is_deleted_as_the_guide_says(tmp_path):
    course = make(tmp_path / "course", asked=ASKED)
    for student in ("ann", "eve_roe"):
        hand_in(course, student, why=TEXT)
    assert run(course, "grade", NAME, "--quiet") == 0
    mark(course, "ann", 2)
    for folder in ("submitted", "autograded"):
        shutil.rmtree(course / folder / "eve_roe")
    (course / "grades" / NAME / "eve_roe.json").unlink()
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        book.remove_student("eve_roe")
    assert run(course, "grade", NAME, "--quiet") == 0
    left = [path for path in (course / "grades").rglob("*") if path.is_file()]
    assert {f"{NAME}/.answers", f"{NAME}/.entered"} <= {str(p.relative_to(course / "grades")) for p in left}
    assert not [path for path in left if "eve_roe" in path.read_text() or "eve_roe" in path.name]
    assert gradebook.read(Course(course), NAME)["ann"].changed == frozenset()  # the mark still counts
