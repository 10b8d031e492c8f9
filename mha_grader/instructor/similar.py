"""Hand-ins whose code is nearly the same, whatever its names, comments and layout are.

Each item's syntax tree is written as a sequence of labels without names, comments, strings, annotations and
imports. Hashes of all runs of `RUN` labels are thinned out by winnowing (Schleimer, Wilkerson and Aiken 2003,
*Winnowing: local algorithms for document fingerprinting*, SIGMOD), and what is left are the fingerprints. Those
of the released notebook and of the solution are taken away, and so are those that many hand-ins share: obvious
code is no sign of anything. Hand-ins are compared only where they share a fingerprint, so that the work grows
with the shared code and not with the number of pairs.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mha_grader.course.assignment import Assignment
from mha_grader.course.records import SubmissionRecord
from mha_grader.grading.syntax import parsed

RUN = 12  # labels that are hashed together
WINDOW = 4  # of as many neighbouring hashes the smallest one is kept
SHORTEST = 30  # labels of an item that is compared at all
OWN = 20  # fingerprints that a hand-in must have to itself, or shares with few, to be compared
FEW = 5  # forms of code that may share a fingerprint; in large classes `FEW_SHARE` of all
FEW_SHARE = 0.05
ALIKE = 0.8  # shared fingerprints, as a share of those that either one has

Fingerprint = tuple[str, bytes]  # the item, and a hash


@dataclass(frozen=True)
class Alike:
    """Hand-ins that are nearly the same."""

    students: tuple[str, ...]
    share: float  # of the fingerprints that either form of the code has: 1 if there is only one form
    items: tuple[str, ...]  # where they are alike, in the assignment's order
    fingerprints: int  # that they share


def labels(source: str) -> list[str]:
    """The code as a sequence of labels, in the order of its text.

    Returns:
        Empty if the code cannot be parsed, or if it defines neither a function nor a class: answers to the same
        question may well be the same.
    """
    tree = parsed(source)
    if tree is None or not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body):
        return []
    found: list[str] = []
    stack: list[ast.AST] = [*reversed(tree.body)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.expr_context) or _is_text(node):
            continue
        found.append(_label(node))
        children = [
            child
            for name, value in ast.iter_fields(node)
            if name not in ("annotation", "returns")
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST)
        ]
        stack += reversed(children)
    return found


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is only a string, as a docstring is."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _label(node: ast.AST) -> str:
    kind = type(node).__name__
    if isinstance(node, ast.Attribute):
        return f"{kind} {node.attr}"  # names of a library, which nobody renames
    if isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes):
        value = hex(node.value) if type(node.value) is int else repr(node.value)  # `repr` refuses long ones
        return f"{kind} {value}"
    return kind


def fingerprints(item: str, source: str) -> frozenset[Fingerprint]:
    """What is left of an item's code; empty if it is too short to say anything."""
    sequence = labels(source)
    if len(sequence) < SHORTEST:
        return frozenset()
    runs = zip(*(sequence[start:] for start in range(RUN)), strict=False)
    hashes = [hashlib.blake2b("\n".join(run).encode(), digest_size=8).digest() for run in runs]
    windows = zip(*(hashes[start:] for start in range(WINDOW)), strict=False)
    return frozenset((item, min(window)) for window in windows)


def find(assignment: Assignment, records: Mapping[str, SubmissionRecord]) -> list[Alike]:
    """Hand-ins that are nearly the same, the most alike first.

    Args:
        assignment: the assignment; code of its released notebook and of its solution does not count.
        records: what was graded, by student.
    """
    given: set[Fingerprint] = set()
    for item in assignment.written:
        cell = assignment.cell("solution", item)
        given |= fingerprints(item, cell.released) | fingerprints(item, cell.source)
    about = {cell.item: cell.about for cell in assignment.cells if cell.about}  # several tests of one cell
    forms: defaultdict[frozenset[Fingerprint], list[str]] = defaultdict(list)
    for student, record in records.items():
        sources = {about.get(item.item) or item.item: item.source for item in record.items}
        own = frozenset().union(*(fingerprints(*pair) for pair in sources.items())) - given
        if len(own) >= OWN:
            forms[own].append(student)
    found = list(_compare(assignment.written, dict(forms)))
    return sorted(found, key=lambda alike: (-alike.share, -alike.fingerprints, alike.students))


def _compare(items: tuple[str, ...], forms: Mapping[frozenset[Fingerprint], list[str]]) -> Iterator[Alike]:
    students = list(forms.values())
    shared_by = Counter(itertools.chain.from_iterable(forms))
    few = max(FEW, int(FEW_SHARE * len(forms)))
    rare = [{each for each in form if shared_by[each] <= few} for form in forms]
    holders: defaultdict[Fingerprint, list[int]] = defaultdict(list)
    for number, form in enumerate(rare):
        if len(form) >= OWN:
            for each in form:
                holders[each].append(number)
            if len(students[number]) > 1:
                yield _alike(items, students[number], 1.0, form)
    both = Counter(pair for numbers in holders.values() for pair in itertools.combinations(numbers, 2))
    for (one, other), count in both.items():
        share = count / (len(rare[one]) + len(rare[other]) - count)
        if count >= OWN and share >= ALIKE:
            yield _alike(items, students[one] + students[other], share, rare[one] & rare[other])


def _alike(items: tuple[str, ...], students: list[str], share: float, same: set[Fingerprint]) -> Alike:
    where = {item for item, _ in same}
    return Alike(tuple(sorted(students)), share, tuple(i for i in items if i in where), len(same))
