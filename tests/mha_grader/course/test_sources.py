"""What is read from a text source: solutions between markers, hidden blocks, their parts, other names."""

import inspect
from types import SimpleNamespace

import pytest

from mha_grader.course.given_file import given_cell
from mha_grader.course.sources import (
    SourceError,
    mark_bodies,
    read_parts,
    rename,
    solution_source,
    split_test,
)
from mha_grader.grading.judge import load_parts
from mha_lib.attention import softmax
from mha_lib.pitfalls import variants

# Bodies

CLASS = '''\
class Layer(nn.Module):
    """Doc."""

    width: int = 3

    # What it needs.
    def __init__(self, width):
        # the first comment
        super().__init__()
        self.width = width
        # the last comment

    @property
    def half(self):
        """Half."""

        return self.width / 2
'''
MARKED_CLASS = '''\
class Layer(nn.Module):
    """Doc."""

    width: int = 3

    # What it needs.
    def __init__(self, width):
        ### BEGIN SOLUTION
        # the first comment
        super().__init__()
        self.width = width
        # the last comment
        ### END SOLUTION

    @property
    def half(self):
        """Half."""
        ### BEGIN SOLUTION

        return self.width / 2
        ### END SOLUTION'''


def test_in_a_class_the_body_of_each_method_is_the_solution():
    assert mark_bodies(CLASS) == MARKED_CLASS


def test_a_decorated_first_statement_is_part_of_the_solution():
    text = "def f(x):\n    @cache\n    def g():\n        return x\n    return g()\n"
    assert mark_bodies(text).splitlines()[1:3] == ["    ### BEGIN SOLUTION", "    @cache"]


def test_a_signature_over_several_lines_stays():
    text = "def f(\n    x,\n):\n    # why\n    return x\n"
    assert mark_bodies(text).splitlines()[:4] == ["def f(", "    x,", "):", "    ### BEGIN SOLUTION"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(x): return x\n", "should start on a line of its own"),
        ('def f(x):\n    """Doc."""\n', "no body below its docstring"),
    ],
)
def test_a_body_that_cannot_be_taken_out_is_refused(text, words):
    with pytest.raises(SourceError, match=words):
        mark_bodies(text)


def test_a_solution_may_be_written_out_inside_a_function():
    text = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"
    assert solution_source(text, "f") == text


def test_a_test_cell_is_split_at_its_marker():
    visible, hidden = split_test("check()\n\n### BEGIN HIDDEN TESTS\n\npart()\n### END HIDDEN TESTS\n")
    assert (visible, hidden) == ("check()", "part()")


def test_a_part_may_need_several_and_helpers_are_no_parts():
    hidden = (
        'def helper(): ...\n@part(points=1)\ndef a(rng): "A."\n@part(points=2.5)\ndef b(rng): "B."\n'
        '@part(points=3, needs=("a", "b"))\ndef c(rng): "C."\n'
    )
    assert [(part.name, part.points) for part in read_parts(hidden)] == [("a", 1.0), ("b", 2.5), ("c", 3.0)]


# Pieces of other assignments


def test_a_name_is_replaced_where_it_is_a_name_and_where_text_calls_it():
    source = 'def f(f_, g=1):\n    """f of\n    f(3) and sf(3)."""\n    return f(x.f) + sf  # f\n'
    assert rename(source, "f", "new") == (
        'def new(f_, g=1):\n    """f of\n    new(3) and sf(3)."""\n    return new(x.new) + sf  # f\n'
    )


def test_a_library_function_may_come_under_another_name():
    made = solution_source("from mha_lib.attention import softmax as mended", "mended")
    expected = mark_bodies(inspect.getsource(softmax)).replace("softmax(", "mended(")
    assert made.rstrip() == expected


def test_a_wrong_variant_comes_without_the_words_that_tell_what_is_wrong():
    made = given_cell("from mha_lib.pitfalls.code.single_head.attention import attention_no_scale as broken")
    assert made.startswith("def broken(")
    assert "Wrong" not in made
    assert '"""' not in made
    compile(made, "made", "exec")


def test_a_part_for_each_question_is_counted():
    hidden = 'parts = part_for_each(check, points=1.5, proves={"why": "What follows.", "how": "How."})'
    assert [(part.name, part.points) for part in read_parts(hidden)] == [("why", 1.5), ("how", 1.5)]
    parts = load_parts("def check(question): pass\n" + hidden, {}, SimpleNamespace())
    assert [(part.name, part.points) for part in parts] == [("why", 1.5), ("how", 1.5)]


def test_a_checkers_parts_are_counted():
    parts = read_parts('parts = checker_parts(check, "single_head.causal_mask", right=3, each=0.5)')
    wrong = len(variants("single_head", "causal_mask"))
    assert sum(part.points for part in parts) == 3 + 0.5 * wrong
