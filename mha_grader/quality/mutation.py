"""How strong the hidden tests are against mistakes that nobody thought of: mutation scores.

The reference of each item is changed mechanically, one place at a time (an operator, a sign, a constant, an
axis, an argument, a name, a dropped statement), and the hidden test is run on each mutant. A mutant that keeps
all points is a survivor: either it is the same function in disguise, or a test is missing.

    python -m mha_grader.quality.mutation [ASSIGNMENT | ASSIGNMENT.ITEM …]

prints the score of each item and every survivor, as a difference of lines. It takes minutes, so it is no test.
"""

from __future__ import annotations

import argparse
import ast
import copy
import linecache
import signal
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mha_grader.course.assignment import Assignment, CourseError, assignment_names, load_assignment
from mha_grader.quality.kill_table import judge

SECRET = b"mutation"
SECONDS = 20  # for one mutant

BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
CALLS = {
    "max": "min",
    "sum": "mean",
    "where": "maximum",
    "sqrt": "square",
    "swapaxes": "moveaxis",
    "exp": "exp2",
}


@dataclass(frozen=True)
class Mutant:
    """A changed reference."""

    what: str
    line: int
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every function or class that differs from `source` in one place; its docstrings are left alone."""
    tree = _without_annotations(ast.parse(source))
    original = ast.unparse(tree)
    seen = {original}
    for number, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node, tree):
            changed = copy.deepcopy(tree)
            twin = next(found for i, found in enumerate(ast.walk(changed)) if i == number)
            change(twin)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield Mutant(what, getattr(node, "lineno", 0), text)


def _without_annotations(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return tree


def _changes(node: ast.AST, tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Pairs (words, function that changes such a node in place)."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in BINARY:
            yield "operator", lambda twin: setattr(twin, "op", BINARY[type(twin.op)]())
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult | ast.FloorDiv):
            yield "operands exchanged", _exchange
        yield "left operand alone", lambda twin: _become(twin, twin.left)
        yield "right operand alone", lambda twin: _become(twin, twin.right)
    elif isinstance(node, ast.UnaryOp):
        yield "sign or not dropped", lambda twin: _become(twin, twin.operand)
    elif isinstance(node, ast.Compare):
        for other in COMPARE.get(type(node.ops[0]), ()):
            yield "comparison", lambda twin, other=other: twin.ops.__setitem__(0, other())
    elif isinstance(node, ast.BoolOp):
        opposite = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and / or", lambda twin: setattr(twin, "op", opposite())
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        number: Any = node.value
        for value in [not number] if isinstance(number, bool) else [number + 1, number - 1]:
            yield "constant", lambda twin, value=value: setattr(twin, "value", value)
    elif isinstance(node, ast.Call):
        for index in range(len(node.keywords)):
            yield "keyword dropped", lambda twin, index=index: twin.keywords.pop(index)
        for index in range(len(node.args) - 1):
            yield "arguments exchanged", lambda twin, index=index: _swap(twin.args, index)
        for index in range(len(node.args)):
            yield "argument in place of the call", lambda twin, index=index: _become(twin, twin.args[index])
        if isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield "another function", lambda twin: setattr(twin.func, "attr", CALLS[twin.func.attr])
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
            yield "method dropped", lambda twin: _become(twin, twin.func.value)
    elif isinstance(node, ast.Tuple | ast.List) and isinstance(getattr(node, "ctx", None), ast.Load):
        for index in range(len(node.elts) - 1):
            yield "entries exchanged", lambda twin, index=index: _swap(twin.elts, index)
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            if getattr(node, bound) is not None:
                yield "bound dropped", lambda twin, bound=bound: setattr(twin, bound, None)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        names = {arg.arg for arg in ast.walk(tree) if isinstance(arg, ast.arg)} - {"self", node.id}
        if node.id in {arg.arg for arg in ast.walk(tree) if isinstance(arg, ast.arg)}:
            for name in sorted(names):
                yield "another argument", lambda twin, name=name: setattr(twin, "id", name)
    elif isinstance(node, ast.If):
        yield "condition always met", lambda twin: setattr(twin, "test", ast.Constant(True))
        yield "condition never met", lambda twin: setattr(twin, "test", ast.Constant(False))
    if isinstance(node, ast.FunctionDef | ast.If | ast.For):
        for index, statement in enumerate(node.body):
            docstring = (
                index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            )
            if not docstring and not isinstance(statement, ast.Pass):
                yield "statement dropped", lambda twin, index=index: twin.body.__setitem__(index, ast.Pass())


def _become(node: Any, other: ast.AST) -> None:
    node.__class__ = other.__class__
    node.__dict__ = dict(other.__dict__)


def _exchange(node: Any) -> None:
    node.left, node.right = node.right, node.left


def _swap(items: list[Any], index: int) -> None:
    items[index], items[index + 1] = items[index + 1], items[index]


def survivors(assignment: Assignment, item: str) -> tuple[int, list[Mutant]]:
    """How many mutants an item has, and those that keep all points."""
    cell = assignment.cell("solution", item)
    source = _definition(cell.source, item)
    alive, count = [], 0
    for mutant in mutants(source):
        try:
            tested = _load(assignment, item, mutant.source)
        except Exception:
            continue  # it does not even define a function
        count += 1
        if _keeps_all_points(assignment, item, tested):
            alive.append(mutant)
    return count, alive


def _definition(source: str, item: str) -> str:
    """The text of the function or class in a solution cell."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == item:
            return ast.unparse(_without_annotations(node))
    raise CourseError(f"the solution cell of {item} does not define it as a function or class")


def _load(assignment: Assignment, item: str, source: str) -> Any:
    """The mutant, beside the other items and given names of the reference."""
    namespace = dict(vars(assignment.reference))
    name = f"<mutant of {item}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)
    return namespace[item]


def _keeps_all_points(assignment: Assignment, item: str, tested: Any) -> bool:
    def stop(signum: int, frame: types.FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        row = judge(assignment, item, "pitfall", "mutant", tested, SECRET)
    except TimeoutError:
        return False
    finally:
        signal.alarm(0)
    return row.score == row.max_score


def main(argv: list[str] | None = None) -> int:
    """Print the scores; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m mha_grader.quality.mutation", description=__doc__)
    parser.add_argument("wanted", nargs="*", metavar="ASSIGNMENT or ASSIGNMENT.ITEM")
    for wanted in parser.parse_args(argv).wanted or assignment_names(Path.cwd()):
        name, _, only = wanted.partition(".")
        assignment = load_assignment(Path.cwd(), name)
        if only and only not in assignment.items:
            parser.error(f"{name} has no item {only!r}; it has {', '.join(assignment.items)}")
        for item in [only] if only else assignment.items:
            if not callable(getattr(assignment.reference, item)):
                continue
            count, alive = survivors(assignment, item)
            print(f"{name}.{item}: {count - len(alive)} of {count} mutants lose points", flush=True)
            source = _definition(assignment.cell("solution", item).source, item).splitlines()
            for mutant in alive:
                for old, new in zip(source, mutant.source.splitlines(), strict=False):
                    if old != new:
                        print(f"    {mutant.what}: {old.strip()}  ->  {new.strip()}", flush=True)
                        break
    return 0


if __name__ == "__main__":
    sys.exit(main())
