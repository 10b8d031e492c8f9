"""A cell of answers may compute with the notebook's names, and one answer that fails costs no other one."""

import dataclasses
import json

import pytest

from mha_grader.course.assignment import Cell
from mha_grader.grading.answers import one_by_one
from mha_grader.grading.grade import grade_item, grade_submission

TESTS = """
check = 5
### BEGIN HIDDEN TESTS
parts = part_for_each(
    lambda question: expect_answer(answers, reference.answers, question),
    points=1,
    proves={"one": "The first.", "two": "The second.", "three": "The third."},
)
### END HIDDEN TESTS
"""
RIGHT = 'answers = {"one": 1, "two": 2.5, "three": "c"}'
STUB = 'answers = {"one": None, "two": None, "three": None}'


@pytest.fixture(scope="module")
def asked(toy):
    """The small assignment with three answers, and a demonstration before them that defines a name."""
    show = "from helper import half\nsizes = [3, 4]\nraise ValueError(double(1))"
    cells = (
        *toy.cells[:-2],
        Cell("more", "show", show, show),
        Cell("answers", "solution", STUB, RIGHT, "answers"),
        Cell("test_answers", "test", TESTS.split("### BEGIN")[0], TESTS, "answers", 3),
    )
    return dataclasses.replace(toy, cells=cells)


def graded(asked, settings, answers, **sources):
    sources |= {"double": "def double(x):\n    return 2 * x", "answers": answers}
    cells = [
        {
            "cell_type": "markdown" if cell.kind == "markdown" else "code",
            "source": sources.get(cell.id, cell.released),
            "metadata": {"nbgrader": {"grade_id": cell.id}},
        }
        for cell in asked.cells
    ]
    record = grade_submission(asked, settings, json.dumps({"cells": cells}).encode())
    return {part.name: part for item in record.items if item.item == "answers" for part in item.parts}


def statuses(parts):
    return [part.status for part in parts.values()]


@pytest.mark.parametrize(
    "one",
    [
        "len(sizes) - 1",  # a name of a demonstration, which itself ends with an error
        "sizes[0] - 2",
        "double(0.5)",  # of an earlier item
        "int(np.mean([1 for size in sizes]))",  # of the given cells
        "np.int64(1)",
        "np.array(1.0)",
    ],
)
def test_answers_that_compute_are_read_as_in_the_notebook(asked, settings, one):
    answers = f"""answers = {{"one": {one}, "two": half(5), "three": "abc"[len(sizes)]}}"""
    assert statuses(graded(asked, settings, answers)) == ["pass"] * 3


def test_names_of_a_visible_check_are_there_as_well(asked, settings):
    cells = (*asked.cells[:-2], Cell("test_plot", "test", "check = 5", TESTS, "plot", 1), *asked.cells[-2:])
    with_check = dataclasses.replace(asked, cells=cells)
    item = grade_item(with_check, settings, "answers", 'answers = {"one": check - 4, "two": half(check)}')
    assert [part.status for part in item.parts] == ["pass", "pass", "fail"]


def test_a_demonstration_that_the_student_changed_is_not_undone(asked, settings):
    parts = graded(asked, settings, 'answers = {"one": len(sizes), "two": nothing}', more="sizes = [7]")
    assert statuses(parts) == ["pass", "fail", "fail"]


def test_each_answer_fails_alone_with_the_value_and_the_reason(asked, settings):
    parts = graded(
        asked, settings, 'x = nothing\nanswers = {"one": x, "two": 2.5, "three": "cc"}\nanswers.foo()'
    )
    assert statuses(parts) == ["fail", "pass", "fail"]
    assert "(NameError: name 'x' is not defined)" in parts["one"].message
    assert "'cc'" in parts["three"].message
    assert statuses(graded(asked, settings, "answers = {")) == ["error"] * 3


@pytest.mark.parametrize(
    "source",
    [
        "answers = {",
        "%time x = 1\nanswers = {}",
        "x = 1\n" * 5000,
        "(" * 5000,
        "answers = {'one': 1" + " + x" * 1500 + "}",
    ],
)
def test_a_cell_that_cannot_be_taken_apart_is_left_alone(source):
    assert one_by_one(source) is None


def test_a_cell_is_taken_apart_without_a_change_of_what_it_does():
    source = 'more = {"a": 1}\nanswers = {"one": 1, **more, "two": [i for i in (2, 3)]}\nanswers["one"] += 1'
    plain, apart = {}, {}
    exec(source, plain)
    exec(one_by_one(source), apart)
    assert apart["answers"] == plain["answers"] == {"one": 2, "a": 1, "two": [2, 3]}
