"""What students are given of earlier assignments: an import in the notebook, and code in `given.py` beside it."""

import ast
import importlib.util
import inspect

import nbformat
import pytest

from mha_grader.course.authoring import build
from mha_grader.course.given_file import given_cell, given_file
from mha_grader.course.sources import SourceError, read_source
from mha_lib.attention import attention, softmax
from mha_lib.heads import head_dim, split_heads
from tests.mha_grader.course.demo_course import HEAD, INTRO, ROOT, make_course

PIECES = """
# %% role="given" id="earlier"
from mha_lib.attention import softmax, attention
from mha_lib.heads import head_dim, split_heads as cut
"""
NEXT = HEAD.replace("demo", "next") + INTRO.replace("{points softmax}", "1").replace("of {points}", "")
IMPORTS = '\n# %% role="given" id="imports"\nimport numpy as np\nfrom collections.abc import Sequence\n'


@pytest.fixture
def course(tmp_path):
    """A course whose second assignment, `next`, gives the first one's `softmax`."""
    make_course(tmp_path)
    (tmp_path / "solutions" / "next.py").write_text(NEXT + IMPORTS + PIECES)
    return tmp_path


def text_of(course, name="next"):
    return given_file(read_source(course / "solutions" / f"{name}.py"), course / "solutions")


def load(path):
    spec = importlib.util.spec_from_file_location("given", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_imports_in_one_short_cell_what_the_file_beside_it_defines(course):
    path = build(course, "next")
    cell = nbformat.read(path, as_version=4).cells[-1]
    assert (cell.id, cell.metadata.tags) == ("earlier", ["given"])
    assert cell.source == "from given import attention, cut, head_dim, softmax"
    made = load(path.with_name("given.py"))
    for name, right in {"softmax": softmax, "attention": attention, "head_dim": head_dim}.items():
        assert inspect.getsource(getattr(made, name)) == inspect.getsource(right)
    assert inspect.getsource(made.cut) == inspect.getsource(split_heads).replace("split_heads(", "cut(")


def test_it_imports_what_its_code_uses_and_nothing_of_the_course(course):
    text = text_of(course)
    lines = [line for line in text.splitlines() if "import " in line]
    assert lines == ["import numpy as np"]
    assert "mha_lib" not in text


def test_it_says_which_items_of_which_assignments_its_pieces_are(course):
    assert "\nFrom demo: `softmax`.\n" in text_of(course)


def test_an_assignment_that_gives_nothing_has_no_such_file(course):
    assert text_of(course, "demo") is None
    assert not build(course, "demo").with_name("given.py").exists()


def test_a_piece_that_uses_what_is_not_given_is_refused(course):
    source = course / "solutions" / "next.py"
    for lacking, name in (
        ("softmax, ", "softmax"),
        ("import numpy as np\n", "np"),
        ("head_dim, ", "head_dim"),
    ):
        source.write_text((NEXT + IMPORTS + PIECES).replace(lacking, ""))
        with pytest.raises(SourceError, match=rf"uses {name}, which no given cell"):
            build(course, "next")


def test_a_long_import_stands_in_several_lines():
    heads, masks = "combine_heads, head_dim, split_heads", "causal_mask, decoder_mask, padding_mask"
    cell = given_cell(f"from mha_lib.heads import {heads}\nfrom mha_lib.masks import {masks}")
    assert max(map(len, cell.splitlines())) <= 78
    (statement,) = ast.parse(cell).body
    assert [alias.name for alias in statement.names] == sorted(f"{heads}, {masks}".split(", "))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "exercises").glob("*/given.py")), ids=lambda path: path.parent.name
)
def test_every_piece_of_the_course_is_documented_and_comes_from_an_earlier_assignment(path):
    made = load(path)
    pieces = [each for each in vars(made).values() if getattr(each, "__module__", "") == "given"]
    assert pieces
    for piece in pieces:
        assert inspect.getdoc(piece)
        assert f"`{piece.__name__}`" in made.__doc__
