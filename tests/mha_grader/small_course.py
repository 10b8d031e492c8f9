"""A course with one small assignment, released and ready to grade, for tests of what is around grading."""

import json
import shutil
import warnings
from pathlib import Path

from mha_grader.course import authoring
from mha_grader.course.folders import config_of_a_copy

ROOT = Path(__file__).parents[2]
NAME = "small"
SECRET_WORD = "never_seen_by_students"

SOURCE = f"""\
# ---
# jupyter:
#   jupytext: {{text_representation: {{extension: .py, format_name: percent}}}}
#   mha: {{assignment: small, version: "1.0"}}
# ---

# %% [markdown] id="intro"
# # Twice and half

# %% role="given" id="imports"
import numpy as np

# %% [markdown] id="double_text"
# ## `double`
#
# **Points** {{points double}} · **Book** *Small things*, section *Twice*

# %% role="solution" item="double"
def double(x):
    raise NotImplementedError()
### BEGIN SOLUTION
def double(x):
    return 2 * x
### END SOLUTION

# %% role="test" item="double"
assert double(2) == 4
### BEGIN HIDDEN TESTS
{SECRET_WORD} = 1

@part(points=0.1, example="double(np.array([1.0, 2.0]))")
def numbers(rng):
    "Twice every number."
    x = rng.normal(size=(3, 4))
    expect_close(double(x), reference.double(x))

@part(points=0.2)
def integers(rng):
    "Integers are doubled as well."
    expect_equal(double(np.arange(5)), 2 * np.arange(5))
### END HIDDEN TESTS

# %% role="solution" item="half"
def half(x):
    raise NotImplementedError()
### BEGIN SOLUTION
def half(x):
    return x / 2
### END SOLUTION

# %% role="test" item="half"
assert half(2) == 1
### BEGIN HIDDEN TESTS
@part(points=3)
def numbers(rng):
    "Half of every number."
    x = rng.normal(size=(3, 4))
    expect_close(half(x), reference.half(x))
### END HIDDEN TESTS
"""

ASKED = """
# %% [markdown] id="why_text"
# ## `why`
#
# Why is twice half of four times? {points why} points of {points}:
#
# {criteria why}

# %% [markdown] role="answer" item="why"
# Since 4x / 2 = 2x, says the model.
"""
RUBRIC = """
[why]
criteria = [[2, "a reason"], [0.5, "an example"]]
comments = ["Show it for $x < 0$, too."]
"""

DOUBLE = "def double(x):\n    return x + x\n"
HALF = "def half(x):\n    return 0.5 * x\n"


def make(folder: Path, config: str = "", asked: str = "") -> Path:
    """Make the course in a folder that does not exist.

    Args:
        folder: the folder.
        config: is added to its nbgrader_config.py.
        asked: is added to the source, with the rubric: `ASKED`, or nothing.
    """
    (folder / "solutions").mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text(config_of_a_copy(ROOT) + config)
    (folder / "solutions" / f"{NAME}.py").write_text(SOURCE + asked)
    if asked:
        (folder / "solutions" / f"{NAME}_rubric.toml").write_text(RUBRIC)
    for name in ("checks.py", "course.toml"):
        shutil.copyfile(ROOT / "solutions" / name, folder / "solutions" / name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        authoring.release(folder, NAME)
    return folder


def hand_in(
    course: Path, student: str, double=DOUBLE, half=HALF, extra="", submitted="submitted", why=None
) -> Path:
    """Write a hand-in; returns its folder."""
    notebook = json.loads((course / "exercises" / NAME / f"{NAME}.ipynb").read_text())
    for cell in notebook["cells"]:
        cell["source"] = {"double": double, "half": half, "why": why or cell["source"]}.get(
            cell["id"], cell["source"]
        )
    if extra:
        new = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        notebook["cells"].insert(2, new | {"source": extra, "id": "own"})
    folder = course / submitted / student / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.ipynb").write_text(json.dumps(notebook))
    return folder
