"""What a notebook's visible checks become: a line in the notebook, and a function in `checks.py`."""

import ast

import nbformat
import pytest

from mha_grader.course.visible_checks import VisibleChecks, check_name, visible_checks

HELPERS = "import copy\n\n\ndef one_line(function):\n    return function\n\n\nLIMIT = 3\n"
TEST = "{}\n### BEGIN HIDDEN TESTS\nsecret = 1\n### END HIDDEN TESTS"


def cell(source, **metadata):
    return nbformat.v4.new_code_cell(source, metadata=metadata)


SOURCE = nbformat.v4.new_notebook(
    cells=[
        cell("import math\nimport numpy as np\nfrom mha_lib.attention import softmax", role="given"),
        cell("from checks import check_double", role="show"),
        cell("HALF = 0.5", role="check"),
        cell(
            TEST.format(
                "x = np.ones(2)\nassert double(x)[0] == len(x), [y for y in x]\nassert half(HALF) < LIMIT"
            ),
            role="test",
            item="double",
        ),
        cell(TEST.format("check_double(double)"), role="test", item="check_double"),
    ]
)


def test_the_line_names_the_item_first_and_then_what_else_the_checks_need_of_the_notebook():
    checks = VisibleChecks(SOURCE, HELPERS)
    assert checks.call(SOURCE.cells[3]) == "check_double(double, half)"
    assert checks.call(SOURCE.cells[4]) == "try_check_double(check_double, double)"
    assert check_name("softmax") == "check_softmax"


def test_the_file_has_the_helpers_the_imports_that_are_used_what_is_shared_and_no_hidden_test():
    text = VisibleChecks(SOURCE, HELPERS).file()
    assert text.startswith(HELPERS)
    assert "import numpy as np" in text
    assert "import math" not in text  # no check uses it
    assert "mha_lib" not in text
    assert "secret" not in text
    assert "HALF = 0.5" in text
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["one_line", "check_double", "try_check_double"]


def test_the_functions_run_the_checks():
    space = {}
    exec(VisibleChecks(SOURCE, HELPERS).file(), space)
    space["check_double"](lambda x: 2 * x, lambda x: x / 2)
    with pytest.raises(AssertionError):
        space["check_double"](lambda x: x, lambda x: x / 2)


def test_a_course_without_helpers_keeps_its_checks_in_the_notebook(tmp_path):
    assert visible_checks(SOURCE, tmp_path) is None
    (tmp_path / "checks.py").write_text(HELPERS)
    assert visible_checks(SOURCE, tmp_path).helpers == HELPERS
