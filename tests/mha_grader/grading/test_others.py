"""Another assignment's notebook earns nothing, and code that it gives is shown to a person."""

import ast
import dataclasses
import json
from pathlib import Path

import pytest

from mha_grader.course.assignment import Released, load_assignment
from mha_grader.grading import others, rebuild
from mha_grader.grading.grade import grade_submission
from mha_grader.grading.syntax import MAX_PARSED

COURSE = Path(__file__).parents[3]
NAMES = [path.stem for path in sorted((COURSE / "exercises").glob("*/*.ipynb"))]
GIVEN = 'def double(x):\n    """Twice."""\n    y = x + x  # a comment\n    return y\n'
NEXT = Released(
    "next",
    {"intro": "# Next", "given": GIVEN, "text": "And now:", "triple": "def triple(x):\n    ..."},
    (GIVEN,),
)


@pytest.fixture(scope="module")
def course_of_two(toy):
    return dataclasses.replace(toy, others=(NEXT,))


def notebook(sources, ids=True):
    cells = [
        {"cell_type": "code", "source": source, "metadata": {"nbgrader": {"grade_id": name}} if ids else {}}
        for name, source in sources.items()
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode()


def own(toy, **sources):
    return {cell.id: sources.get(cell.id, cell.released) for cell in toy.cells}


@pytest.mark.parametrize("ids", [True, False])
def test_the_notebook_of_another_assignment_earns_nothing(course_of_two, settings, ids):
    record = grade_submission(course_of_two, settings, notebook(NEXT.cells, ids))
    assert (record.status, record.score) == ("another-assignment", 0)
    assert record.notes == ("this is the notebook of next, and not of toy: hand in toy.ipynb",)


def test_what_is_ones_own_is_graded_whatever_else_lies_in_it(course_of_two, toy):
    code = {"double": GIVEN}
    plain = {"a": "import numpy as np", "b": GIVEN}  # nothing is left of the released notebook
    for sources in (own(toy, **code), own(toy, **code) | {f"{k}_2": v for k, v in NEXT.cells.items()}, plain):
        for ids in (True, False):
            assert rebuild.rebuild(course_of_two, notebook(sources, ids)).sources["double"] == GIVEN


def test_code_that_another_notebook_gives_is_shown_to_a_person(course_of_two):
    bare = "import math\ndef double(x):\n\n    y = (x + x)\n    return y"
    assert others.given_elsewhere(course_of_two, "double", bare) == (
        "double is the code that the notebook next gives",
    )
    for source in ("def double(x):\n    return x + x", "def double(x:", "x = 1", ""):
        assert others.given_elsewhere(course_of_two, "double", source) == ()


def test_a_notebook_may_give_more_code_than_a_student_may_write(toy):
    long = GIVEN + "".join(
        f"def f{number}(x):\n    return {number} * x\n" for number in range(MAX_PARSED // 20)
    )
    other = dataclasses.replace(NEXT, given=(long,))
    found = others.given_elsewhere(dataclasses.replace(toy, others=(other,)), "double", GIVEN)
    assert found == ("double is the code that the notebook next gives",)
    assert others.given_elsewhere(dataclasses.replace(toy, others=(other,)), "double", long) == ()


def test_code_that_is_nested_without_end_is_graded_and_is_nobody_elses(course_of_two, settings):
    deep = "def double(x):\n    y = x" + " + x" * 1500 + "\n    return y\n"
    record = grade_submission(course_of_two, settings, notebook(own(course_of_two, double=deep)))
    assert record.status == "graded"
    assert others.given_elsewhere(course_of_two, "double", deep) == ()


def test_code_that_lies_in_a_file_beside_another_notebook_is_shown_to_a_person():
    assignment = load_assignment(COURSE, "multi_head")
    text = (COURSE / "exercises" / "efficient_heads" / "given.py").read_text("utf-8")
    (split_heads,) = [each for each in ast.parse(text).body if getattr(each, "name", "") == "split_heads"]
    found = others.given_elsewhere(assignment, "split_heads", ast.unparse(split_heads))
    assert found == ("split_heads is the code that the notebooks efficient_heads and real_heads give",)


def test_another_name_does_not_hide_code_that_a_notebook_gives():
    assignment = load_assignment(COURSE, "pitfalls")
    solution = assignment.cell("solution", "repaired_split").source
    (found,) = others.given_elsewhere(assignment, "repaired_split", solution)
    assert "efficient_heads" in found  # there it is called split_heads


@pytest.mark.parametrize("name", NAMES)
def test_each_released_notebook_of_the_course_is_its_own_assignments(name):
    assignment = load_assignment(COURSE, name)
    assert [other.name for other in assignment.others] == [other for other in NAMES if other != name]
    for other in NAMES:
        cells = rebuild.parse((COURSE / "exercises" / other / f"{other}.ipynb").read_bytes())
        assert others.belongs_to(assignment, cells) == (None if other == name else other)
