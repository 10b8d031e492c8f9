"""An untouched notebook runs from top to bottom. (With the solutions in it: the tests of each assignment.)"""

import pytest

NAMES = ["single_head", "multi_head", "efficient_heads", "real_heads"]


@pytest.fixture(params=NAMES)
def assignment(request, loaded):
    return loaded[request.param]


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(assignment, run, text_of):
    outputs, failed = run({})
    assert set(failed.values()) == {"NotImplementedError"}
    assert {f"test_{item}" for item in assignment.items if item != "answers"} <= set(failed)
    if "answers" in assignment.items:
        lines = text_of(outputs["test_answers"]).splitlines()
        assert len(lines) == len(assignment.reference.answers)
        assert all(line.endswith("no answer yet") for line in lines)
