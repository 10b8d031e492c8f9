"""An untouched notebook runs from top to bottom. (With the solutions in it: the tests of each assignment.)"""

import pytest

from .conftest import LOADED


@pytest.fixture(params=LOADED)
def assignment(request):
    return LOADED[request.param]


def test_an_untouched_notebook_runs_to_its_end_and_says_what_is_not_written(assignment, run, text_of):
    outputs, failed = run({})
    assert set(failed.values()) == {"NotImplementedError"}
    for item in assignment.items:
        right = getattr(assignment.reference, item)
        if callable(right):
            assert f"test_{item}" in failed
        else:
            lines = text_of(outputs[f"test_{item}"]).splitlines()
            assert len(lines) == len(right)
            assert all(line.startswith("todo ") for line in lines)
