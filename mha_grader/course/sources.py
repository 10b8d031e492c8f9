"""Reading a text source: its cells, the library's code that stands for a solution, the parts of a hidden block."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import tokenize
from pathlib import Path
from typing import Any

from mha_grader.course.cells import BEGIN_SOLUTION, END_SOLUTION, HIDDEN_BEGIN, HIDDEN_END
from mha_grader.testing.checkers import checker_heads
from mha_grader.testing.parts import PartHead, check_parts


class SourceError(Exception):
    """A text source is not what the generator can read; the message says which cell and why."""


def read_source(path: Path) -> Any:
    """The text source as a notebook whose metadata holds its stamp."""
    if not path.is_file():
        raise SourceError(f"there is no {path}")
    source = _notebook(path)
    stamp = source.metadata.get("mha", {})
    if stamp.get("assignment") != path.stem or not isinstance(stamp.get("version"), str):
        raise SourceError(f'{path.name}: its head should say mha: {{assignment: {path.stem}, version: "…"}}')
    return source


def _notebook(path: Path) -> Any:
    import jupytext  # takes a second, and most commands read no text source

    return jupytext.read(path)


def solution_source(text: str, item: str) -> str:
    """The text of a solution cell of the instructor's notebook, solutions between nbgrader's markers.

    Args:
        text: the cell of the source: one import of the item, or the item written out with markers.
        item: the item's name.

    Raises:
        SourceError: if it is neither.
    """
    statements = statements_of(text)
    if len(statements) == 1 and isinstance(statements[0], ast.ImportFrom):
        imported = statements[0]
        if [alias.asname or alias.name for alias in imported.names] != [item]:
            raise SourceError(
                f"its import should be: from {imported.module} import {item}, or … import … as {item}"
            )
        return mark_bodies(source_of(imported, imported.names[0]))
    markers = re.findall(rf"^\s*({BEGIN_SOLUTION}|{END_SOLUTION})$", text, flags=re.MULTILINE)
    if not markers or markers != [BEGIN_SOLUTION, END_SOLUTION] * (len(markers) // 2):
        raise SourceError(f"it should be one import, or hold {BEGIN_SOLUTION} and {END_SOLUTION}")
    assigned = {name.id for s in statements for name in ast.walk(s) if isinstance(name, ast.Name)}
    defined = {s.name for s in statements if isinstance(s, ast.FunctionDef | ast.ClassDef)}
    if item not in assigned | defined:
        raise SourceError(f"it does not define {item}")
    return text


def source_of(imported: ast.ImportFrom, alias: ast.alias) -> str:
    """The source of what is imported, under the name that it is imported as.

    Raises:
        SourceError: if the module has nothing of that name.
    """
    module = importlib.import_module(str(imported.module))
    if not hasattr(module, alias.name):
        raise SourceError(f"{imported.module} has no {alias.name}")
    source = inspect.getsource(getattr(module, alias.name)).rstrip()
    if module.__name__.startswith("mha_lib.pitfalls."):
        source = _definition_alone(source)
    return rename(source, alias.name, alias.asname or alias.name)


def _definition_alone(source: str) -> str:
    """A function without its decorators, which name the mistake, and without its docstring, which tells it."""
    function = statements_of(source)[0]
    docstring = function.body[0]  # type: ignore[attr-defined]
    lines = source.splitlines()
    return "\n".join(lines[function.lineno - 1 : docstring.lineno - 1] + lines[docstring.end_lineno :])


def rename(source: str, old: str, new: str) -> str:
    """The source with a name replaced: where it stands as a name, and where text shows a call of it."""
    lines = source.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type == tokenize.NAME:
            text = new if token.string == old else token.string
        elif token.type == tokenize.STRING:
            text = re.sub(rf"\b{old}\(", f"{new}(", token.string)
        else:
            continue
        (row, column), (end_row, end_column) = token.start, token.end
        lines[row - 1 : end_row] = [lines[row - 1][:column] + text + lines[end_row - 1][end_column:]]
    return "".join(lines)


def mark_bodies(source: str) -> str:
    """Mark the body of a function, or of each method of a class, as a solution: all below its docstring.

    Raises:
        SourceError: if there is a body that stands on the line of its `def` or is a docstring alone.
    """
    lines = source.rstrip().splitlines()
    definition = statements_of(source)[0]
    nodes = definition.body if isinstance(definition, ast.ClassDef) else [definition]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for function in reversed(functions):  # from the end, so that line numbers stay right
        first = function.body[0]
        indent = " " * first.col_offset
        end = function.end_lineno or 0
        while end < len(lines) and lines[end].startswith(f"{indent}#"):
            end += 1  # a comment below the last statement belongs to the solution
        if ast.get_docstring(function) is not None:
            if len(function.body) == 1:
                raise SourceError(f"{function.name} has no body below its docstring")
            start = first.end_lineno or 0
        else:
            decorators = getattr(first, "decorator_list", [])
            start = min(node.lineno for node in [first, *decorators]) - 1
            while lines[start - 1].strip() == "" or lines[start - 1].lstrip().startswith("#"):
                start -= 1  # a comment above the first statement belongs to the solution
        if start < function.lineno:
            raise SourceError(f"the body of {function.name} should start on a line of its own")
        lines[end:end] = [indent + END_SOLUTION]
        lines[start:start] = [indent + BEGIN_SOLUTION]
    return "\n".join(lines)


def split_test(text: str) -> tuple[str, str]:
    """The visible and the hidden part of a test cell.

    Raises:
        SourceError: unless visible checks come first and one hidden block ends the cell.
    """
    lines = text.rstrip().splitlines()
    if lines.count(HIDDEN_BEGIN) != 1 or lines.count(HIDDEN_END) != 1 or lines[-1] != HIDDEN_END:
        raise SourceError(f"it should end in one hidden block, from {HIDDEN_BEGIN} to {HIDDEN_END}")
    begin = lines.index(HIDDEN_BEGIN)
    visible, hidden = "\n".join(lines[:begin]).strip(), "\n".join(lines[begin + 1 : -1]).strip()
    if not statements_of(visible):
        raise SourceError("it has no visible checks before the hidden ones")
    return visible, hidden


def read_parts(hidden: str) -> list[PartHead]:
    """The parts that the text of a hidden block defines, without running it.

    Raises:
        SourceError: if there is none, or one is not written as `mha_grader.testing` says.
    """
    try:
        parts = [part for statement in statements_of(hidden) for part in _parts_of(statement)]
        check_parts(parts)
    except ValueError as error:
        raise SourceError(str(error)) from None
    return parts


def _parts_of(statement: ast.stmt) -> list[PartHead]:
    """The parts that one statement of a hidden block makes."""
    if isinstance(statement, ast.FunctionDef):
        for call in statement.decorator_list:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "part":
                return [_written_part(statement, _options(call))]
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Name) and call.func.id == "checker_parts":
            return _checker_parts(call)
        if isinstance(call.func, ast.Name) and call.func.id == "part_for_each":
            return _parts_for_each(call)
    return []  # a helper of the parts


def _written_part(function: ast.FunctionDef, options: dict[str | None, Any]) -> PartHead:
    if not _is_number(options.get("points")):
        raise SourceError(f"part {function.name!r} needs points=… with a literal number that is not negative")
    needs = options.get("needs", ())
    needs = tuple(needs) if isinstance(needs, list | tuple) else (needs,)
    return PartHead(function.name, float(options["points"]), needs, ast.get_docstring(function) or "")


def _checker_parts(call: ast.Call) -> list[PartHead]:
    options = _options(call)
    item = _literal(call.args[1]) if len(call.args) == 2 else None
    if not isinstance(item, str) or not all(_is_number(options.get(name)) for name in ("right", "each")):
        raise SourceError("checker_parts needs a checker, an item as text, and right=…, each=… as numbers")
    return checker_heads(item, right=options["right"], each=options["each"])


def _parts_for_each(call: ast.Call) -> list[PartHead]:
    options = _options(call)
    proves = options.get("proves")
    if not isinstance(proves, dict) or not _is_number(options.get("points")):
        raise SourceError(
            "part_for_each needs a check, points=… as a number, and proves=… as a dict of texts"
        )
    points = float(options["points"])
    return [PartHead(question, points, (), words) for question, words in proves.items()]


def _options(call: ast.Call) -> dict[str | None, Any]:
    """The literal values that a call gives by name."""
    return {keyword.arg: _literal(keyword.value) for keyword in call.keywords}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _literal(node: ast.expr | None) -> Any:
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def borrowed_tests(sources: Path, item: str, borrow: str, share: float) -> str:
    """The hidden tests of another assignment's item, made to be about `item`.

    Args:
        sources: the folder of the text sources.
        item: whose tests they become.
        borrow: "assignment.item" whose tests they are.
        share: what their points are multiplied with.

    Raises:
        SourceError: if there is no such item.
    """
    assignment, other = borrow.split(".")
    path = sources / f"{assignment}.py"
    cells = _notebook(path).cells if path.is_file() else []
    for cell in cells:
        if cell.metadata.get("role") == "test" and cell.metadata.get("item") == other:
            hidden = rename(split_test(cell.source)[1], other, item)
            return re.sub(r"\bpoints=([\d.]+)", lambda match: f"points={float(match[1]) * share:g}", hidden)
    raise SourceError(f"there is no item {borrow} whose tests could be borrowed")


def rest_on(hidden: str, ground: str) -> str:
    """The hidden tests, in which every part that needs no other one needs the part `ground`."""
    needy = {
        function.name
        for function in statements_of(hidden)
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call) and any(keyword.arg == "needs" for keyword in call.keywords)
    }

    def add(match: re.Match[str]) -> str:
        return match[0] if match[3] in needy else f'{match[1]}, needs="{ground}"{match[2]}def {match[3]}('

    return re.sub(r"(@part\(\s*points=[\d.]+)((?:(?!@part).)*?)def (\w+)\(", add, hidden, flags=re.DOTALL)


def statements_of(text: str) -> list[ast.stmt]:
    """The statements of a text.

    Raises:
        SourceError: if it is not Python.
    """
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise SourceError(f"line {error.lineno}: {error.msg}") from None
