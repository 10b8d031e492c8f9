"""Changing an assignment whose hand-ins have been graded: nothing is lost but what is dropped."""

import shutil

import pytest
from nbgrader.api import Gradebook

from mha_grader import cli
from mha_grader.course import authoring
from mha_grader.grading import schedule
from tests.mha_grader.small_course import NAME, SOURCE, hand_in, make

pytestmark = pytest.mark.filterwarnings("ignore")  # nbgrader's own, of many kinds
HALF_ITEM = SOURCE[SOURCE.index('# %% role="solution" item="half"') :]


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr(schedule, "FEW", 1000)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    course = make(tmp_path_factory.mktemp("graded") / "course")
    hand_in(course, "ann")
    assert run(course, "grade", NAME) == 0
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        notebook = book.find_submission_notebook(NAME, NAME, "ann")
        next(grade for grade in notebook.grades if grade.name == "test_double").manual_score = 0.25
        next(comment for comment in notebook.comments if comment.name == "double").manual_comment = "nice"
        book.db.commit()
    return course


@pytest.fixture
def course(graded, tmp_path):
    return shutil.copytree(graded, tmp_path / "course")


def run(course, *arguments):
    return cli.main(["--course", str(course), *arguments])


def write(course, source):
    (course / "solutions" / f"{NAME}.py").write_text(source)


def in_the_book(course):
    """Points, score of the tests, score of a person, by item; and comments, by cell."""
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        notebook = book.find_submission_notebook(NAME, NAME, "ann")
        scores = {g.name[5:]: (g.cell.max_score, g.auto_score, g.manual_score) for g in notebook.grades}
        return scores, {c.name: c.manual_comment for c in notebook.comments if c.manual_comment}


def test_text_may_change_at_any_time(course):
    write(
        course,
        SOURCE.replace("# # Twice and half", '# # Half and twice\n\n# %% [markdown] id="more"\n# More.'),
    )
    authoring.release(course, NAME)
    assert run(course, "grade", NAME) == 0
    scores, comments = in_the_book(course)
    assert scores == {"double": (pytest.approx(0.3), pytest.approx(0.3), 0.25), "half": (3, 3, None)}
    assert comments == {"double": "nice"}
    write(course, SOURCE)
    authoring.release(course, NAME)
    assert in_the_book(course) == (scores, comments)


def test_a_change_is_shown_and_nothing_is_done_without_yes(course, capsys):
    write(course, SOURCE.replace(HALF_ITEM, "").replace("points=0.1", "points=1"))
    before = in_the_book(course)
    assert run(course, "change", NAME) == 0
    told = capsys.readouterr().out
    assert "item half (3 points) is dropped" in told
    assert "item double: 0.3 points become 1.2" in told
    assert f"mha-grade change {NAME} --yes" in told
    assert in_the_book(course) == before


def test_cells_that_still_name_a_dropped_item_are_told(course, capsys):
    shown = '# %% role="show" id="plot"\nfrom checks import check_half\nhalf_of = 1\n'
    text = '# %% [markdown] id="why"\n# Compare `half` with `double`.\n'
    write(course, SOURCE.replace(HALF_ITEM, f"{shown}\n{text}"))
    assert run(course, "change", NAME) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "still names" in line]
    assert told == [f"cell {cell} still names half: change it, too" for cell in ("plot", "why")]
    write(course, SOURCE.replace(HALF_ITEM, ""))
    assert run(course, "change", NAME) == 0
    assert "still names" not in capsys.readouterr().out


def test_an_item_is_dropped_another_gets_other_points_and_the_class_is_regraded(course, capsys):
    write(course, SOURCE.replace(HALF_ITEM, "").replace("points=0.1", "points=1"))
    assert run(course, "change", NAME, "--yes") == 0
    assert f"mha-grade grade {NAME}" in capsys.readouterr().out
    assert run(course, "grade", NAME) == 0
    scores, comments = in_the_book(course)
    assert scores == {"double": (pytest.approx(1.2), pytest.approx(1.2), 0.25)}
    assert comments == {"double": "nice"}
    kept = (course / "grades" / f"{NAME}-dropped.csv").read_text().splitlines()
    assert kept == ["student,item,auto_score,manual_score,extra_credit", "ann,test_half,3.0,,"]


def test_an_item_may_come_back_and_may_be_worth_nothing(course):
    write(course, SOURCE.replace(HALF_ITEM, ""))
    assert run(course, "change", NAME, "--yes") == 0
    write(course, SOURCE.replace("points=3", "points=0"))
    assert run(course, "change", NAME, "--yes") == 0
    assert run(course, "grade", NAME) == 0
    assert in_the_book(course)[0]["half"] == (0, 0, None)


def test_a_hidden_test_that_changes_in_mid_term_regrades_the_class(course):
    harder = SOURCE.replace("expect_close(half(x), reference.half(x))", "expect_equal(half(x), x)")
    write(
        course, harder.replace('version: "1.0"', 'version: "1.1"').replace("return x / 2", "return x * 1.0")
    )
    assert run(course, "change", NAME, "--yes") == 0
    assert run(course, "grade", NAME) == 0
    assert in_the_book(course)[0]["half"] == (3, 0, None)


def test_a_hand_in_that_was_made_before_an_item_was_added_gets_nothing_for_it(course):
    write(course, SOURCE.replace(HALF_ITEM, ""))
    assert run(course, "change", NAME, "--yes") == 0
    hand_in(course, "ann")  # from the notebook without the item
    assert run(course, "grade", NAME) == 0
    write(course, SOURCE)
    assert run(course, "change", NAME, "--yes") == 0
    assert run(course, "grade", NAME) == 0
    assert in_the_book(course)[0]["half"] == (3, 0, None)
