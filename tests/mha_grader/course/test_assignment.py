"""What the grader reads of an assignment, and how the course's own files can be wrong."""

import pytest

from mha_grader.course.assignment import CourseError, assignment_names, in_teaching_order, load_assignment
from mha_grader.course.authoring import release
from tests.mha_grader.course.demo_course import DEMO


def test_every_source_but_the_helpers_is_an_assignment(course):
    assert assignment_names(course) == ["demo"]


def test_assignments_come_in_the_order_of_the_book_and_after_them_those_that_it_lacks(course):
    assert in_teaching_order(course, ["b", "a"]) == ["a", "b"]
    contents = "".join(f"- file: exercises/{name}/{name}\n" for name in ("real_heads", "heads", "c"))
    (course / "_toc.yml").write_text(contents)
    names = ["b", "heads", "a", "c", "real_heads"]
    assert in_teaching_order(course, names) == ["real_heads", "heads", "c", "a", "b"]


ASKS = DEMO.replace(
    'role="solution" item="softmax"', 'role="solution" item="softmax" asks_for="fast_softmax"'
)
ALLOWS = ASKS.replace('role="solution" item="answers"', 'role="solution" item="answers" may_use="one two"')


def test_what_an_item_asks_for_and_may_use_is_known_to_the_grader_and_to_no_student(course):
    (course / "solutions" / "demo.py").write_text(DEMO)
    before = (release(course, "demo") / "demo.ipynb").read_bytes()
    (course / "solutions" / "demo.py").write_text(ALLOWS)
    assert (release(course, "demo") / "demo.ipynb").read_bytes() == before
    assignment = load_assignment(course, "demo")
    softmax, answers = (assignment.cell("solution", item) for item in ("softmax", "answers"))
    assert (softmax.asks_for, softmax.may_use) == (("fast_softmax",), ())
    assert (answers.asks_for, answers.may_use) == ((), ("one", "two"))


PACKAGES = ("packages = 'pandas'", "assignments = 3", "[assignments.a]\nlibrary = []")  # that are wrong


def test_a_course_may_say_what_a_library_has_of_what_students_build(course):
    release(course, "demo")
    assert load_assignment(course, "demo").library == ()
    (course / "solutions" / "course.toml").write_text(r"library = ['fast_\w+', 'softmax']")
    assert load_assignment(course, "demo").library == (r"fast_\w+", "softmax")


def test_packages_for_an_assignment_that_does_not_exist_are_a_slip_and_are_named(course):
    release(course, "demo")
    (course / "solutions" / "course.toml").write_text('[assignments.demo]\npackages = ["scipy"]\n')
    assert load_assignment(course, "demo").besides == ("scipy",)
    (course / "solutions" / "course.toml").write_text('[assignments.demmo]\npackages = ["scipy"]\n')
    with pytest.raises(CourseError, match=r"table \[assignments\.demmo\].*known assignments: demo$"):
        load_assignment(course, "demo")


def test_a_course_file_that_cannot_be_read_is_named(course):
    release(course, "demo")
    for text in (
        "library = 3",
        "libraries = []",
        "library = ['(']",
        "library =",
        "self_study = 1",
        *PACKAGES,
    ):
        (course / "solutions" / "course.toml").write_text(text)
        with pytest.raises(CourseError, match=r"course\.toml should hold self_study"):
            load_assignment(course, "demo")
