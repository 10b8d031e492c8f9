"""A library's version of what was to be built is shown to a person, whatever it is called, and nothing else is."""

import inspect
from pathlib import Path

import pytest

from mha_grader.course.assignment import Cell, assignment_names, load_assignment
from mha_grader.grading import library_use
from mha_lib.styles import styles

ROOT = Path(__file__).parents[3]

LIBRARY = (
    "MultiheadAttention",
    "Transformer(Encoder)?(Layer)?",
    "mha_lib",
    r"_?scaled_dot_product_\w*attention",
)


def flags(source, added=(), **names):
    return library_use.flags(source, Cell("item", "solution", "", "", "item", **names), LIBRARY, added)


def helpers(cells):
    return library_use.helpers(cells, LIBRARY)


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ("import torch.nn.functional as F\nF.scaled_dot_product_attention(Q, K, V)", 2, "scaled_dot_product"),
        ("from torch.nn.functional import scaled_dot_product_attention as mine", 1, "scaled_dot_product"),
        ("x = 1\n\nf = getattr(F, 'scaled_dot_product_attention')", 3, "scaled_dot_product_attention"),
        ("self.inner = nn.MultiheadAttention(8, 2)", 1, "MultiheadAttention"),
        ("import torch.nn as nn\nlayer = nn.TransformerEncoderLayer", 2, "TransformerEncoderLayer"),
        ("from mha_lib.attention import attention", 1, "mha_lib"),
        ("import mha_lib.attention", 1, "mha_lib"),
        ("f = getattr(F, 'scaled_dot' + '_product_' + 'attention')", 1, "scaled_dot_product_attention"),
        ("f = find('torch.nn.MultiheadAttention')", 1, "MultiheadAttention"),
        (
            "x = 1\nx = torch._scaled_dot_product_flash_attention(Q, K, V)",
            2,
            "_scaled_dot_product_flash_attention",
        ),
        ("self.inner = nn.Transformer(8)", 1, "Transformer"),
        ("%time\nF.scaled_dot_product_attention(Q, K, V)", 2, "scaled_dot_product_attention"),
        ("#" * 20_000 + "\nF.scaled_dot_product_attention(Q, K, V)", 2, "scaled_dot_product_attention"),
    ],
)
def test_the_line_is_named(source, line, name):
    (flag,) = flags(source)
    assert flag.startswith(f"line {line} uses a library's {name}")
    assert source.splitlines()[line - 1].strip() in flag


@pytest.mark.parametrize(
    "source",
    [
        "def attention(Q, K, V):\n    # not F.scaled_dot_product_attention\n    return softmax(Q @ K.T) @ V",
        '"""Like scaled_dot_product_attention, by hand."""',
        "class MultiHeadAttention(nn.Module): pass",
        "def broken(:\n    # scaled_dot_product_attention",
        "model.eval(); re.compile('x'); layer.exec",
        "x = 1 + 'a' + 2.5",
        "",
    ],
)
def test_own_code_and_talk_about_it_are_left_alone(source):
    assert flags(source) == ()


def test_what_an_item_asks_for_may_be_used_and_its_lack_is_told():
    asked = ("scaled_dot_product_attention",)
    uses = "def item(Q, K, V):\n    return F.scaled_dot_product_attention(Q, K, V)"
    assert flags(uses, asks_for=asked) == ()
    assert flags("def item(Q, K, V):\n    return Q", asks_for=asked) == (
        f"{asked[0]} was asked for but does not appear",
    )
    assert flags("nn.MultiheadAttention", asks_for=asked)[0].startswith(
        "line 1 uses a library's MultiheadAttention"
    )


def test_what_an_item_may_use_is_not_missed():
    may = ("MultiheadAttention",)
    assert flags("isinstance(layer, nn.MultiheadAttention)", may_use=may) == ()
    assert flags("def item(layer): return layer", may_use=may) == ()
    assert flags("F.scaled_dot_product_attention(Q, K, V)", may_use=may) != ()


def test_where_the_course_names_no_library_only_code_that_cannot_be_read_is_told():
    solution = Cell("item", "solution", "", "", "item")
    assert library_use.flags("nn.MultiheadAttention(8, 2)\nexec(code)", solution, ()) == (
        "line 2 may run code that is not shown here, through exec: exec(code)",
    )


@pytest.mark.parametrize(
    "source",
    ["exec('F.scaled_dot' + x)", "eval(code)", "__import__('torch')", "import importlib as i", "x = exec"],
)
def test_code_that_cannot_be_read_here_is_told(source):
    (flag,) = flags(f"x = 1\n{source}")
    assert flag.startswith("line 2 may run code that is not shown here")


ADDED = """import torch.nn.functional as F
from torch.nn.functional import scaled_dot_product_attention as kernel
def helper(Q, K, V):
    return F.scaled_dot_product_attention(Q, K, V)
print(F.scaled_dot_product_attention(1, 2, 3))
"""


def test_what_an_item_takes_from_a_cell_that_was_added_is_told_and_nothing_else_of_that_cell():
    found = helpers(["def broken(:", ADDED])
    assert flags("def attention(Q, K, V): return F.softmax(Q @ K.T) @ V", found) == ()
    for name, line in (("helper", 4), ("kernel", 2)):
        (flag,) = flags(f"attention = {name}", found)
        assert flag.startswith(
            f"in a cell that was added, line {line} uses a library's scaled_dot_product_attention"
        )


def test_a_text_of_very_many_pieces_is_not_put_together():
    """With sums in sums the time would grow with the square of their number."""
    name = "scaled_dot_product_attention"
    assert flags(" + ".join(map(repr, name))) == ()
    assert len(flags(" + ".join(map(repr, (name[:5], *name[5:20], name[20:]))))) == 1


def reaches_in(source, added=(), solution=""):
    return library_use.reaches_in(source, Cell("item", "solution", "", solution, "item"), added)


@pytest.mark.parametrize(
    "source",
    [
        "import gc\nfor one in gc.get_objects(): pass",
        "from sys import _getframe as up\nframe = up(1)",
        "import inspect",
        "def f(x):\n    try: raise ValueError\n    except ValueError as e: e.__traceback__.tb_frame.f_back",
        "f = getattr(frame, 'f_' + 'back')",
        "().__class__.__base__.__subclasses__()",
        "%time\nimport ctypes",
    ],
)
def test_what_can_reach_what_runs_the_code_is_shown(source):
    assert any("can reach the program that runs the code" in flag for flag in reaches_in(source))
    assert any("in a cell that was added" in flag for flag in reaches_in("x = 1", added=[source]))


def test_what_the_solution_uses_and_harmless_cells_are_not_shown():
    assert reaches_in("import sys\nsys.float_info", solution="import sys") == ()
    assert reaches_in("x = 1", added=["import sys, os\nprint(sys.version, os.listdir())"]) == ()


@pytest.mark.parametrize("name", assignment_names(ROOT))
def test_no_right_style_reaches_what_runs_it(name):
    assignment = load_assignment(ROOT, name)
    for item in assignment.items:
        solution = assignment.cell("solution", item)
        for style in styles(name, item).values():
            assert library_use.reaches_in(inspect.getsource(style), solution) == ()


def test_a_change_far_inside_is_shown_too():
    (line,) = library_use.reaches_out("def f(x):\n    x" + ".real" * 1500 + ".flags = 1\n    return x")
    assert line.startswith("line 2 changes ….flags")
