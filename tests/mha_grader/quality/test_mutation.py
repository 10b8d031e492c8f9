"""Mutants are functions that differ in one place, and a test that looks at nothing lets all of them live."""

import dataclasses

import pytest

from mha_grader.course.assignment import CourseError
from mha_grader.quality.mutation import mutants, survivors

SOURCE = '''def f(x, y: int = 2) -> int:
    """Doc - 1."""
    if x <= 1:
        return -x
    return g(x - y, axis=1)
'''


def test_every_kind_of_place_is_changed_once():
    found = {mutant.source.split('"""')[-1].strip() for mutant in mutants(SOURCE)}
    original = "if x <= 1:\n        return -x\n    return g(x - y, axis=1)"
    for old, new in [
        ("x - y", "x + y"),
        ("x - y", "y - x"),
        ("x - y", "x"),
        ("<= 1", "< 1"),
        ("<= 1", "> 1"),
        ("<= 1", "<= 2"),
        ("return -x", "return x"),
        ("return -x", "pass"),
        (", axis=1", ""),
        ("axis=1", "axis=0"),
        ("x <= 1", "True"),
        ("x <= 1", "False"),
        ("g(x - y, axis=1)", "x - y"),
    ]:
        assert original.replace(old, new) in found


def test_no_mutant_is_the_original_or_there_twice():
    sources = [mutant.source for mutant in mutants(SOURCE)]
    unchanged = "def f(x, y=2):" + SOURCE.split("int:")[1]
    assert unchanged.strip() not in sources
    assert any(source.replace("y=3", "y=2") == unchanged.strip() for source in sources)
    assert len(set(sources)) == len(sources)


def test_docstrings_and_annotations_are_left_alone():
    for mutant in mutants(SOURCE):
        assert "Doc - 1." in mutant.source
        assert "int" not in mutant.source


def test_mutants_of_a_tested_item_die(toy):
    count, alive = survivors(toy, "double")
    assert count > 5
    assert alive == []


def test_where_nothing_is_tested_every_mutant_lives(toy):
    blind = '### BEGIN HIDDEN TESTS\n@part(points=1)\ndef nothing(rng):\n    "Nothing."\n### END HIDDEN TESTS'
    cells = tuple(
        dataclasses.replace(cell, source=blind) if cell.id == "test_double" else cell for cell in toy.cells
    )
    count, alive = survivors(dataclasses.replace(toy, cells=cells), "double")
    assert len(alive) == count > 5


def test_an_item_that_is_no_function_is_refused(toy):
    with pytest.raises(CourseError, match="answers"):
        survivors(toy, "answers")
