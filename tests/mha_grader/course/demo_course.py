"""A course with one small text source, `demo`."""

from pathlib import Path

import nbformat

from mha_grader.course.folders import config_of_a_copy

ROOT = Path(__file__).parents[3]

HEAD = """\
# ---
# jupyter:
#   jupytext: {text_representation: {extension: .py, format_name: percent}}
#   mha: {assignment: demo, version: "1.2"}
# ---
"""
AUTHOR = """
# %% role="author"
from mha_grader.testing import expect, part
"""
INTRO = """
# %% [markdown] id="intro"
# # Demo
#
# `softmax` is worth {points softmax} of {points}.
"""
GIVEN = """
# %% role="given" id="imports"
import numpy as np
"""
SHOW = """
# %% role="show" id="plot"
print(softmax(np.zeros(2)))
"""
SOLUTION = """
# %% role="solution" item="softmax"
from mha_lib.attention import softmax
"""
TEST = """
# %% role="test" item="softmax"
assert softmax(np.zeros(2))[0] == 0.5
### BEGIN HIDDEN TESTS


@part(points=2)
def values(rng):
    "The values."


@part(points=0.5, needs="values")
def shape(rng):
    "The shape."


### END HIDDEN TESTS
"""
ANSWERS = """
# %% role="solution" item="answers"
answers = {
    "width": None,  # a number
}
### BEGIN SOLUTION
answers = {"width": 64}
### END SOLUTION

# %% role="test" item="answers"
print(answers)
### BEGIN HIDDEN TESTS


@part(points=1)
def width(rng):
    "The width."
    expect(answers["width"] == 64, "no")


### END HIDDEN TESTS
"""
DEMO = HEAD + AUTHOR + INTRO + GIVEN + SOLUTION + TEST + SHOW + ANSWERS


def make_course(folder):
    (folder / "solutions").mkdir()
    (folder / "solutions" / "demo.py").write_text(DEMO)
    (folder / "solutions" / "checks.py").write_text("LIMIT = 3\n")
    (folder / "nbgrader_config.py").write_text(config_of_a_copy(ROOT))
    return folder


def cells_of(path):
    return {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
