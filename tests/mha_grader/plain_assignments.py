"""Assignments as nbgrader's users have them: notebooks with plain asserts, none about attention."""

import json
import warnings
from pathlib import Path

import nbformat

from mha_grader.course import authoring
from mha_grader.course.folders import config_of_a_copy

ROOT = Path(__file__).parents[2]


def graded(source, grade_id, *, points=None, solution=False):
    """A cell with nbgrader's metadata, as its toolbar writes it."""
    cell = nbformat.v4.new_code_cell(source.strip())
    nbgrader = {
        "schema_version": 3,
        "grade_id": grade_id,
        "solution": solution,
        "grade": points is not None,
        "locked": not solution,
        "task": False,
    }
    cell.metadata["nbgrader"] = nbgrader | ({} if points is None else {"points": points})
    del cell["id"]
    return cell


def given(source):
    cell = nbformat.v4.new_code_cell(source.strip())
    del cell["id"]
    return cell


def text(source):
    cell = nbformat.v4.new_markdown_cell(source)
    del cell["id"]
    return cell


def notebook(*cells):
    """In format 4.4, in which most of these were written: cells have no ids."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    form = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}}
    return nbformat.from_dict(form | {"cells": list(cells)})


# As in nbgrader's own example: asserts, an error that is expected, and a look at what a function calls.
PS1 = notebook(
    text("# Squares"),
    given("%matplotlib inline\nimport math"),
    graded(
        '''
def squares(n):
    """The squares of the numbers from 1 to n."""
    ### BEGIN SOLUTION
    if n < 1:
        raise ValueError("n must be at least 1")
    return [i ** 2 for i in range(1, n + 1)]
    ### END SOLUTION
''',
        "squares",
        solution=True,
    ),
    given("print(squares(10))"),
    graded(
        """
assert squares(1) == [1]
assert squares(2) == [1, 4], "squares(2) should be [1, 4]"
### BEGIN HIDDEN TESTS
assert squares(11) == [i * i for i in range(1, 12)]
### END HIDDEN TESTS
""",
        "correct_squares",
        points=1,
    ),
    graded(
        """
for n in (0, -4):
    try:
        squares(n)
    except ValueError:
        pass
    else:
        raise AssertionError("squares should raise a ValueError")
""",
        "squares_invalid_input",
        points=2,
    ),
    graded(
        '''
def sum_of_squares(n):
    """The sum of the squares from 1 to n."""
    ### BEGIN SOLUTION
    return sum(squares(n))
    ### END SOLUTION
''',
        "sum_of_squares",
        solution=True,
    ),
    graded("assert sum_of_squares(10) == 385", "correct_sum_of_squares", points=0.5),
    graded(
        """
orig_squares = squares
del squares
try:
    sum_of_squares(1)
except NameError:
    pass
else:
    raise AssertionError("sum_of_squares does not use squares")
finally:
    squares = orig_squares
""",
        "sum_of_squares_uses_squares",
        points=0.5,
    ),
)

# Arrays, `numpy.testing`, a helper of the tests, values, and what a function does to its argument.
ARRAYS = notebook(
    given(
        "import numpy as np\nfrom numpy.testing import assert_allclose, assert_raises\n\n"
        "data = np.arange(12.0).reshape(3, 4)"
    ),
    graded(
        """
### BEGIN SOLUTION
def centred(x):
    return x - x.mean(axis=0)
### END SOLUTION
""",
        "centred",
        solution=True,
    ),
    graded(
        """
def columns(x):
    return centred(x).mean(axis=0)

assert centred(data).shape == (3, 4)
### BEGIN HIDDEN TESTS
rng = np.random.default_rng(3)
x = rng.normal(size=(5, 2))
kept = x.copy()
assert_allclose(columns(x), 0, atol=1e-9)
assert_allclose(centred(x), x - x.mean(0))
assert_allclose(x, kept, err_msg="x is not what it was")
### END HIDDEN TESTS
""",
        "centred_values",
        points=3,
    ),
    graded(
        """
### BEGIN SOLUTION
columns_of_data = data.shape[1]
middle = np.median(data)
largest = {"value": float(data.max()), "place": (2, 3)}
### END SOLUTION
""",
        "facts",
        solution=True,
    ),
    graded(
        """
assert columns_of_data == 4
### BEGIN HIDDEN TESTS
assert isinstance(middle, float) and middle == 5.5
assert largest["value"] == 11 and largest["place"] == (2, 3)
### END HIDDEN TESTS
""",
        "test_facts",
        points=1,
    ),
    graded(
        """
### BEGIN SOLUTION
def clip(values, low):
    if not isinstance(values, list):
        raise TypeError("values should be a list")
    for place, value in enumerate(values):
        values[place] = max(value, low)
### END SOLUTION
""",
        "clip",
        solution=True,
    ),
    graded(
        """
values = [3, -1, 2]
assert clip(values, 0) is None
assert values == [3, 0, 2]
### BEGIN HIDDEN TESTS
with assert_raises(TypeError):
    clip((1, 2), 0)
assert_allclose(columns(np.eye(3)), 0, atol=1e-9)  # a helper of an earlier cell
### END HIDDEN TESTS
""",
        "test_clip",
        points=2,
    ),
)

# A class, printed text, and a random generator that test and function share: nothing that data alone can tell.
STACK = notebook(
    given("import contextlib, io, random"),
    graded(
        """
class Stack:
    ### BEGIN SOLUTION
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)
    ### END SOLUTION
""",
        "stack",
        solution=True,
    ),
    graded(
        """
stack = Stack()
stack.push(3)
assert len(stack) == 1
### BEGIN HIDDEN TESTS
stack.push("secret word")
assert stack.pop() == "secret word" and stack.pop() == 3 and len(stack) == 0
### END HIDDEN TESTS
""",
        "stack_works",
        points=2,
    ),
    graded(
        """
### BEGIN SOLUTION
def greet(name):
    print(f"Hello, {name}!")


def roll():
    return random.randint(1, 6)


def double(x):
    return 2 * x
### END SOLUTION
""",
        "functions",
        solution=True,
    ),
    graded(
        """
with contextlib.redirect_stdout(io.StringIO()) as printed:
    greet("Ada")
assert printed.getvalue() == "Hello, Ada!\\n"
""",
        "greets",
        points=1,
    ),
    graded(
        """
random.seed(7)
expected = [random.randint(1, 6) for _ in range(20)]
random.seed(7)
assert [roll() for _ in range(20)] == expected
""",
        "rolls",
        points=1,
    ),
    graded("assert double(4) == 8\nassert double('ab') == 'abab'", "doubles", points=1),
)

# A table: NumPy's records do not travel, as data frames do not; and a package of its own is needed.
TABLES = notebook(
    given(
        """
import numpy as np
from sklearn.preprocessing import StandardScaler

table = np.array(
    [("a", 1.0, 10), ("b", 3.0, 20), ("a", 5.0, 60)], dtype=[("group", "U1"), ("x", float), ("n", int)]
)
"""
    ),
    graded(
        """
### BEGIN SOLUTION
def rows_of(table, group):
    return table[table["group"] == group]
### END SOLUTION
""",
        "rows_of",
        solution=True,
    ),
    graded(
        """
assert len(rows_of(table, "a")) == 2
### BEGIN HIDDEN TESTS
assert rows_of(table, "b")["n"].tolist() == [20]
assert rows_of(table, "c").dtype == table.dtype
### END HIDDEN TESTS
""",
        "test_rows_of",
        points=2,
    ),
    graded(
        """
### BEGIN SOLUTION
def scaled(x):
    return StandardScaler().fit_transform(x)
### END SOLUTION
""",
        "scaled",
        solution=True,
    ),
    graded(
        """
assert scaled(np.eye(2)).shape == (2, 2)
### BEGIN HIDDEN TESTS
x = np.array([[1.0, 2.0], [3.0, 8.0], [8.0, 2.0]])
np.testing.assert_allclose(scaled(x), (x - x.mean(0)) / x.std(0))
### END HIDDEN TESTS
""",
        "test_scaled",
        points=1,
    ),
)


# Data frames: a test that hands one over runs where the function is, one that hands over lists runs apart.
FRAMES = notebook(
    given(
        """
import pandas as pd

rows = [{"group": "a", "x": 1.0}, {"group": "b", "x": 3.0}, {"group": "a", "x": 5.0}]
"""
    ),
    graded(
        """
### BEGIN SOLUTION
def totals(rows):
    return pd.DataFrame(rows).groupby("group")["x"].sum().to_dict()
### END SOLUTION
""",
        "totals",
        solution=True,
    ),
    graded(
        """
assert set(totals(rows)) == {"a", "b"}
### BEGIN HIDDEN TESTS
assert totals(rows) == {"a": 6.0, "b": 3.0}
assert totals(rows[:2] + [{"group": "c", "x": -2.0}]) == {"a": 1.0, "b": 3.0, "c": -2.0}
### END HIDDEN TESTS
""",
        "test_totals",
        points=2,
    ),
    graded(
        """
### BEGIN SOLUTION
def largest(frame):
    return frame.sort_values("x", ascending=False).groupby("group", as_index=False).first()
### END SOLUTION
""",
        "largest",
        solution=True,
    ),
    graded(
        """
assert len(largest(pd.DataFrame(rows))) == 2
### BEGIN HIDDEN TESTS
expected = pd.DataFrame({"group": ["a", "b"], "x": [5.0, 3.0]})
pd.testing.assert_frame_equal(largest(pd.DataFrame(rows)), expected)
### END HIDDEN TESTS
""",
        "test_largest",
        points=3,
    ),
)


def essay(source, grade_id, points, *, cell_type="markdown", task=False):
    """A cell that a person marks."""
    cell = graded(source, grade_id, points=points, solution=not task)
    cell.metadata["nbgrader"] |= {"task": task, "grade": not task}
    if cell_type == "markdown":
        return nbformat.from_dict({"cell_type": "markdown", "metadata": cell.metadata, "source": cell.source})
    return cell


# What people mark, beside what is tested.
ESSAY = notebook(
    graded("### BEGIN SOLUTION\ndef f(x):\n    return 2 * x\n### END SOLUTION", "f", solution=True),
    graded("assert f(2) == 4", "test_f", points=1),
    essay("Because it is so.", "why", 3),
    essay("### BEGIN SOLUTION\nplot = f(3)\n### END SOLUTION", "drawing", 2, cell_type="code"),
    graded("assert plot == 6", "test_plot", points=1),
    graded("assert f(1) == 2", "shown", points=0),
    essay("Draw what you found.", "drawn", 4, task=True),
)

SOURCES = {"ps1": PS1, "arrays": ARRAYS, "stack": STACK, "tables": TABLES, "frames": FRAMES, "essay": ESSAY}
PACKAGES = {"tables": "scikit-learn", "frames": "pandas"}


def write(folder: Path, *names: str) -> Path:
    """Write a course of these assignments; what is handed out has the solutions, since nothing was released."""
    (folder / "solutions").mkdir(parents=True)
    (folder / "nbgrader_config.py").write_text(config_of_a_copy(ROOT))
    tables = [
        f'[assignments.{name}]\npackages = ["{PACKAGES[name]}"]\n' for name in names if name in PACKAGES
    ]
    (folder / "solutions" / "course.toml").write_text("".join(tables))
    for name in names:
        for room in ("solutions", "exercises"):
            (folder / room / name).mkdir(parents=True)
            nbformat.write(SOURCES[name], folder / room / name / f"{name}.ipynb")
    return folder


def make(folder: Path, *names: str) -> Path:
    """Make a course of these assignments, released."""
    write(folder, *names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            authoring.release(folder, name)
    return folder


def hand_in(course: Path, name: str, student: str, sources=None, extra="", *, solved=True) -> Path:
    """Hand a notebook in: the solutions with some cells replaced, or what was handed out with these filled in."""
    released = json.loads((course / "exercises" / name / f"{name}.ipynb").read_text())
    right = {
        cell.metadata.nbgrader.grade_id: cell.source for cell in SOURCES[name].cells if _is_solution(cell)
    }
    filled = (right if solved else {}) | (sources or {})
    for cell in released["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = filled.get(grade_id, cell["source"])
    if extra:
        added = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": extra}
        released["cells"].insert(0, added)
    folder = course / "submitted" / student / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ipynb").write_text(json.dumps(released))
    return folder


def _is_solution(cell):
    return cell.metadata.get("nbgrader", {}).get("solution", False)
