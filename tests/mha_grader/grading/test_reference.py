"""A hidden test that the solution itself fails judges nobody: its name is told, and nothing is graded."""

import dataclasses

import pytest

from mha_grader import cli
from mha_grader.course import authoring, store
from mha_grader.course.assignment import CourseError, load_assignment
from mha_grader.course.folders import Course
from mha_grader.grading import grade, reference
from mha_grader.grading.messages import RAISED
from tests.mha_grader.small_course import NAME, SOURCE, hand_in, make

WRONG = SOURCE.replace("expect_equal(double(np.arange(5)), 2 * np.arange(5))", "expect_equal(double(1), 3)")


def changed(toy, item, old, new):
    """The small assignment with a change in the source of one cell."""
    return dataclasses.replace(
        toy,
        cells=tuple(
            dataclasses.replace(cell, source=cell.source.replace(old, new)) if cell.id == item else cell
            for cell in toy.cells
        ),
    )


def test_solutions_that_pass_are_no_news(toy):
    reference.check(toy, b"secret")


@pytest.mark.parametrize(
    ("cell", "old", "new", "words"),
    [
        ("double", "2 * x", "3 * x", "quadruple, part “values” (fail: the output"),  # 9 x is not 4 x
        (
            "test_answers",
            '["number"], "not',
            '["number"] + 1, "not',
            "answers, part “number” (fail: not that number)",
        ),
        (
            "double",
            "return 2 * x",
            "return 2 * y",
            f"double, part “values” (error: {RAISED} NameError",
        ),
    ],
)
def test_the_part_that_a_solution_fails_is_named(toy, cell, old, new, words):
    with pytest.raises(CourseError) as caught:
        reference.check(changed(toy, cell, old, new), b"secret")
    assert "the solutions of toy fail their own hidden tests" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # nbgrader's own
def test_grading_stops_before_anybody_is_judged_and_so_does_the_making_of_exercises(
    tmp_path, capsys, monkeypatch
):
    course = make(tmp_path / "course")
    hand_in(course, "ann")
    monkeypatch.chdir(course)
    assert reference.main([]) == 0
    (course / "solutions" / f"{NAME}.py").write_text(WRONG)
    authoring.release(course, NAME)
    assert reference.main([]) == 1
    assert "double, part “integers”" in capsys.readouterr().err
    assert cli.main(["--course", str(course), "grade", NAME]) == 1
    assert "double, part “integers”" in capsys.readouterr().err
    assert store.load_all(course / "grades" / NAME) == {}


def course_whose_solution_imports(tmp_path, package):
    """The small course with a solution that needs a package, and its assignment."""
    course = make(tmp_path / "course")
    source = SOURCE.replace("    return 2 * x\n", f"    import {package}\n    return 2 * x\n")
    (course / "solutions" / f"{NAME}.py").write_text(source)
    authoring.release(course, NAME)
    return Course(course), load_assignment(course, NAME)


def test_solutions_that_need_what_students_do_not_have_are_found_before_anybody_is_judged(tmp_path):
    course, assignment = course_whose_solution_imports(tmp_path, "mha_lib")
    reference.check(assignment, b"secret")
    with pytest.raises(
        CourseError, match=r"as a hand-in.* double, part “numbers” \(error: .* ModuleNotFoundError"
    ):
        reference.check_once(course, assignment)
    assert not (course.grades(NAME) / ".reference").exists()


def test_solutions_are_tried_again_when_students_may_import_something_else(tmp_path):
    course, assignment = course_whose_solution_imports(tmp_path, "einops")
    reference.check_once(course, assignment)
    (course.root / "solutions" / "course.toml").write_text('packages = ["scipy"]\n')
    with pytest.raises(CourseError, match="No module named 'einops'"):
        reference.check_once(course, load_assignment(course.root, NAME))


def test_a_machine_that_cannot_grade_the_solutions_says_so_in_one_line(tmp_path, capsys, monkeypatch):
    course = make(tmp_path / "course")
    hand_in(course, "ann")

    def fails(*arguments):
        raise OSError("no space left on the device")

    with monkeypatch.context() as patch:
        patch.setattr(grade, "grade_submission", fails)
        assert cli.main(["--course", str(course), "grade", NAME]) == 1
    assert capsys.readouterr().err.count("the solutions of small could not be graded: OSError('no space") == 1
    assert cli.main(["--course", str(course), "grade", NAME]) == 0


def test_solutions_in_a_notebook_that_cannot_be_read_are_told_with_the_reason(tmp_path):
    course = make(tmp_path / "course")
    assignment = load_assignment(course, NAME)
    (course / "solutions" / NAME / f"{NAME}.ipynb").write_text("{")
    with pytest.raises(CourseError, match="as a hand-in, so nobody can be judged by them: the file is no"):
        reference.check_once(Course(course), assignment)
