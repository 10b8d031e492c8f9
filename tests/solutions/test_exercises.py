"""What students are given holds no answer: no marker, no hidden test, no line of a solution, no course code."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from mha_grader.course.assignment import assignment_names
from mha_grader.course.cells import BEGIN_SOLUTION
from mha_grader.course.kit import make_kit
from mha_grader.course.sources import split_test

ROOT = Path(__file__).parents[2]
NAMES = assignment_names(ROOT)
FORBIDDEN = ["BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "mha_lib", "mha_grader", "@part", "reference."]
MODULES = {"numpy", "torch", "matplotlib"}
TELLING = 22  # characters; a shorter line, such as `with torch.no_grad():`, gives nothing away


def cells(path):
    return json.loads(path.read_text("utf-8"))["cells"]


def secret_lines(course, name):
    """The lines of solutions and hidden tests in the instructor's notebook."""
    lines = set()
    for cell in cells(course / "solutions" / name / f"{name}.ipynb"):
        text, nbgrader = "".join(cell["source"]), cell["metadata"]["nbgrader"]
        if nbgrader["solution"] and nbgrader["grade"]:  # a model answer
            lines |= set(text.splitlines())
        elif nbgrader["solution"]:
            for block in text.split(BEGIN_SOLUTION)[1:]:
                lines |= set(block.partition("### END SOLUTION")[0].splitlines())
        elif nbgrader["grade"]:
            lines |= set(split_test(text)[1].splitlines())
    return {line.strip() for line in lines if len(line.strip()) >= TELLING}


@pytest.fixture(scope="session")
def handed_out(course, tmp_path_factory):
    """All that reaches students, by path: the exercises and the kit."""
    for name in ("pyproject.toml", "constraints.txt"):
        (course / name).write_bytes((ROOT / name).read_bytes())
    kit = tmp_path_factory.mktemp("kit")
    for name in assignment_names(course):
        make_kit(course, kit / name, name)
    files = [path for folder in (course / "exercises", kit) for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_text("utf-8") for path in files if path.suffix not in (".zip", ".npz")}


def test_nothing_handed_out_names_what_is_hidden(handed_out):
    assert len(handed_out) >= 2 * 2 * len(NAMES)
    found = [(path.name, word) for path, text in handed_out.items() for word in FORBIDDEN if word in text]
    assert found == []


def given(cell):
    return "given" in cell["metadata"].get("tags", [])


def broken_on_purpose(cell):
    """A function to be mended or named shares most of its lines with the right one."""
    return given(cell) and cell["id"].startswith(("broken_", "case_"))


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_solution_or_hidden_test_is_handed_out(course, handed_out, name):
    secrets = secret_lines(course, name)
    assert len(secrets) > 20
    for path, text in handed_out.items():
        others = path.parent.name != name  # another assignment may give on purpose what this one asks for
        if others and path.name == "given.py":
            continue
        if path.suffix == ".ipynb":
            found = [cell for cell in cells(path) if not (others and given(cell))]
            found = [cell for cell in found if not broken_on_purpose(cell)]
            text = "\n".join("".join(cell["source"]) for cell in found)
        assert [line for line in secrets if line in text] == [], path.name


COUNTS = [
    ("multi_head", "count_parameters"),
    ("multi_head", "attention_flops"),
    ("efficient_heads", "kv_cache_bytes"),
]


@pytest.mark.parametrize(("name", "item"), COUNTS)
def test_a_docstring_says_what_is_counted_and_not_by_which_formula(course, name, item):
    (cell,) = [cell for cell in cells(course / "exercises" / name / f"{name}.ipynb") if cell["id"] == item]
    (function,) = ast.parse("".join(cell["source"])).body
    words, _, example = ast.get_docstring(function).partition(">>>")
    assert re.findall(r"\w*[·×*²^]+\w*|\b(?:times|product of)\b|\d\w*[dnk]_\w+", words) == []
    assert not re.search(r"#.*\b(?:d_model|num_heads|d_k|n)\b", example)
    assert item in example  # a worked number


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_imports_only_what_students_have(course, name):
    imported = set()
    for cell in cells(course / "exercises" / name / f"{name}.ipynb"):
        if cell["cell_type"] == "code":
            for node in ast.walk(ast.parse("".join(cell["source"]))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                if isinstance(node, ast.ImportFrom):
                    imported.add(node.module.split(".")[0])
    beside = {path.stem for path in (course / "exercises" / name).glob("*.py")}
    assert imported - set(sys.stdlib_module_names) <= MODULES | beside


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_no_outputs_and_its_cells_are_locked_but_for_the_solutions(course, name):
    for cell in cells(course / "exercises" / name / f"{name}.ipynb"):
        assert cell.get("outputs", []) == []
        assert cell["metadata"].get("editable", True) is cell["metadata"]["nbgrader"]["solution"]


def texts(found, item):
    """The text above an item's cell; a given cell may stand between."""
    ids = [cell["id"] for cell in found]
    above = found[ids.index(f"{item}_text") : ids.index(item)]
    return "\n".join("".join(cell["source"]) for cell in above if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("name", NAMES)
def test_every_item_states_points_difficulty_importance_minutes_book_and_hint(course, name):
    found = cells(course / "exercises" / name / f"{name}.ipynb")
    solutions = [cell for cell in found if cell["metadata"]["nbgrader"]["solution"]]
    by_person = {cell["id"]: cell["metadata"]["nbgrader"]["grade"] for cell in solutions}
    assert by_person
    head = "| no. | item | points | difficulty | importance | minutes |"
    first = "".join(found[0]["source"])
    assert head in first
    for number, item in enumerate(by_person, start=1):
        (row,) = re.findall(
            rf"^\| {number} \| `{item}` \| ([\d.]+) \| [1-5] \| [1-5] \| \d+ \|$", first, re.M
        )
        text = texts(found, item)
        words = [f"**Points** {row} ·", "**Book**", "<details>"]
        if by_person[item]:
            words += ["**A person marks this one.** What earns points:\n\n* "]
        assert [word for word in words if word not in text] == [], item


@pytest.mark.parametrize("name", NAMES)
def test_the_contract_stands_once_in_the_docstring_with_a_worked_example(course, name):
    found = cells(course / "exercises" / name / f"{name}.ipynb")
    assert "docstring is its contract" in "".join(found[0]["source"])
    for cell in found:
        if cell["cell_type"] != "code" or not cell["metadata"]["nbgrader"]["solution"]:
            continue
        for node in ast.parse("".join(cell["source"])).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                docstring, text = ast.get_docstring(node), texts(found, node.name)
                assert "Args:" in docstring, node.name
                assert ">>>" in docstring or "example" in text, node.name
                assert "**Contract**" not in text, node.name
