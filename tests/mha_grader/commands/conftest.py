"""A course in which something has been graded."""

import pytest

from mha_grader import cli
from tests.mha_grader import small_course


@pytest.fixture(scope="package")
def graded(tmp_path_factory):
    """One hand-in with a wrong `double` has been graded. Only to be looked at."""
    root = small_course.make(tmp_path_factory.mktemp("course") / "small")
    small_course.hand_in(root, "ann", double="def double(x):\n    return x + 2\n")
    assert cli.main(["--course", str(root), "grade", "small", "--quiet"]) == 0
    return root
