"""The notebooks that need PyTorch, graded in the sandbox; and what is tried before anybody is graded."""

from pathlib import Path

import nbformat
import pytest

from mha_grader.course.assignment import assignment_names, load_assignment
from mha_grader.grading import reference
from mha_grader.grading.grade import Settings, grade_submission


def hand_in(assignment, sources):
    notebook = nbformat.v4.new_notebook()
    for cell in assignment.cells:
        if cell.kind == "solution":
            source = sources.get(cell.id, cell.released)
            made = nbformat.v4.new_code_cell(source, id=cell.id)
            made.metadata["nbgrader"] = {"grade_id": cell.id, "solution": True}
            notebook.cells.append(made)
    return nbformat.writes(notebook).encode()


@pytest.mark.parametrize("name", ["batched_torch", "transformer_block", "modern_heads", "language_model"])
def test_the_solutions_get_everything_and_the_released_notebook_nothing(course, name):
    assignment, settings = load_assignment(course, name), Settings(secret=b"secret", course=course)
    solutions = {cell.id: cell.source for cell in assignment.cells if cell.kind == "solution"}
    record = grade_submission(assignment, settings, hand_in(assignment, solutions))
    failed = [
        (item.item, part.name, part.reason)
        for item in record.items
        for part in item.parts
        if part.status != "pass"
    ]
    assert failed == []
    record = grade_submission(assignment, settings, hand_in(assignment, {}))
    assert {part.status for item in record.items for part in item.parts} <= {"error", "fail", "not-run"}


@pytest.mark.parametrize("name", assignment_names(Path(__file__).parents[2]))
def test_no_assignment_is_refused_because_its_solutions_fail(course, name):
    reference.check(load_assignment(course, name), b"secret")
