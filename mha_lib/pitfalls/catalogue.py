"""What the book shows of each pitfall: the wrong lines, an input that exposes them, what comes and should come."""

import ast
import functools
import inspect
import re
import sys
import textwrap
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_lib.pitfalls import examples, torch_examples, variants
from mha_lib.pitfalls.examples import Code, Item

ITEMS: Mapping[str, Item] = {**examples.ITEMS, **torch_examples.ITEMS}
VISIBLE = 1e-3  # smaller differences are no example


@dataclass(frozen=True)
class Exposed:
    """One pitfall, run.

    Attributes:
        place: the item that is shown, `assignment.item`.
        others: further items with this mistake.
        lines: what is wrong in the code; `…` stands for lines that are right.
        input: what kind of input exposes it, in words.
        call: the lines that were run.
        comes, expected: the result of the wrong and of the right code, or the error raised, as text.
    """

    place: str
    others: tuple[str, ...]
    lines: str
    input: str
    call: str
    comes: str
    expected: str


@functools.cache
def expose(slug: str) -> Exposed:
    """Run the mistake on the first example that shows it, in the first item that has it.

    Raises:
        LookupError: if no example of this item shows it.
    """
    place, *others = (item for item in ITEMS if slug in _variants(item))
    variant, item = _variants(place)[slug], ITEMS[place]
    for example in item.examples:
        comes, expected = run(example, variant), run(example, item.right)
        if differ(comes, expected):
            return Exposed(
                place=place,
                others=tuple(others),
                lines=wrong_lines(place, slug),
                input=inspect.getdoc(example) or "",
                call=call_of(example),
                comes=as_text(comes, expected),
                expected=as_text(expected, comes),
            )
    raise LookupError(f"no example of {place} exposes {slug}")


@functools.cache
def _variants(place: str) -> Mapping[str, Code]:
    return variants(*place.split("."))


# --- running -----------------------------------------------------------------------------------------------


def run(example: Callable[[Code], Any], code: Code) -> Any:
    """What the example gives; the exception, if it raises one. Arrays in place of tensors."""
    try:
        with np.errstate(all="ignore"):
            return _plain(example(code))
    except Exception as error:  # whatever it is, it is shown
        return error


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    if hasattr(value, "detach"):
        value = value.detach().numpy()
        return value if value.ndim else value.item()
    return value.item() if isinstance(value, np.generic) else value


def differ(first: Any, second: Any) -> bool:
    """Whether two results are different in kind, in shape, or in an entry by more than `VISIBLE`."""
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return any(differ(one, other) for one, other in zip(first, second, strict=True))
    if type(first) is not type(second):
        return True
    if isinstance(first, Exception):
        return False
    if isinstance(first, np.ndarray):
        return (
            first.shape != second.shape
            or (first.dtype.kind == "b") != (second.dtype.kind == "b")
            or not np.allclose(first, second, rtol=0, atol=VISIBLE, equal_nan=True)
        )
    if isinstance(first, float):
        return not np.isclose(first, second, rtol=0, atol=VISIBLE, equal_nan=True)
    return bool(first != second)


# --- showing -----------------------------------------------------------------------------------------------


def as_text(value: Any, other: Any) -> str:
    """A result in a few lines; of an array also the shape, where the other result has another one."""
    if isinstance(value, tuple):
        others = other if isinstance(other, tuple) and len(other) == len(value) else [None] * len(value)
        return "\n".join(as_text(*pair) for pair in zip(value, others, strict=True))
    if isinstance(value, Exception):
        return textwrap.shorten(f"{type(value).__name__}: {value}", 300, placeholder=" …")
    if isinstance(value, np.ndarray):
        value = value + 0.0 if value.dtype.kind == "f" else value  # no −0
        width = 36 if value.ndim == 1 else 72  # rows of matrices are not broken
        text = np.array2string(value, precision=4, suppress_small=True, max_line_width=width)
        text = re.sub(r"\n\n+", "\n", text)
        same = not isinstance(other, np.ndarray) or other.shape == value.shape
        return text if same else f"{text}\nshape {value.shape}"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    return textwrap.fill(str(value), 72)


def call_of(example: Callable[..., Any]) -> str:
    """The lines of an example, without its head and its docstring; the last one without `return`."""
    lines = _body(example)
    return "\n".join([*lines[:-1], lines[-1].replace("return ", "", 1)])


# --- the wrong lines ---------------------------------------------------------------------------------------


def wrong_lines(place: str, slug: str) -> str:
    """The lines of a variant that neither the right code nor many other variants of the item have.

    Functions that it uses and that are wrong themselves follow. `# …` stands for what is left out: nowhere is
    the right code shown.
    """
    known = set(_lines(ITEMS[place].right)) | _common_lines(place)
    variant, *helpers = _wrong_parts(_variants(place)[slug])
    shown = [_without(known, variant)]
    for helper in helpers:
        shown.append(f"def {helper.__name__}(...):\n" + textwrap.indent(_without(known, helper), "    "))
    return "\n\n".join(shown)


def _without(known: set[str], code: Code) -> str:
    """The code without statements all of whose lines are known, unless none would be left."""
    shown: list[str] = []
    new = False
    for statement in _statements(code):
        if statement[0].strip().startswith(("class ", "def ")):
            shown += ["", *statement] if len(shown) > 1 else statement
        elif not {_bare(line) for line in statement} <= known:
            shown += statement
            new = True
        elif not shown or shown[-1].strip() != "# …":
            shown.append(_indent(statement[0]) + "# …")
    return "\n".join(shown if new else _body(code))


def _statements(code: Code) -> list[list[str]]:
    """The lines of the code, those of a statement together; a head such as `if …:` is a statement of its own."""
    lines = _body(code)
    text = textwrap.dedent("\n".join(lines))
    tree = ast.parse(text if isinstance(code, type) else f"def f():\n{textwrap.indent(text, ' ')}")
    first = 1 if isinstance(code, type) else 2
    spans = {
        node.lineno - first: (node.end_lineno or node.lineno) - first
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    }
    found, at = [], 0
    while at < len(lines):
        end = spans.get(at, at) + 1
        found.append(lines[at:end])
        at = end
    return found


def _wrong_parts(variant: Code) -> list[Code]:
    """The variant, or what it is made around; and the functions that it uses and that are wrong themselves."""
    made_of = inspect.getclosurevars(variant).nonlocals if isinstance(variant, types.FunctionType) else {}
    parts = [each for each in made_of.values() if callable(each)] or [variant]
    names = re.findall(r"\w+", "\n".join(_body(parts[0])))
    around = vars(sys.modules[parts[0].__module__])
    helpers = [
        around[name] for name in dict.fromkeys(names) if isinstance(around.get(name), types.FunctionType)
    ]
    return parts + [helper for helper in helpers if (helper.__doc__ or "").startswith("Wrong: ")]


@functools.cache
def _common_lines(place: str) -> set[str]:
    """Lines that a quarter of the item's variants have, and at least three."""
    found = Counter(line for code in _variants(place).values() for line in set(_lines(code)))
    return {line for line, times in found.items() if times >= max(3, len(_variants(place)) / 4)}


def _lines(code: Code) -> list[str]:
    return [_bare(line) for line in _body(code)]


def _bare(line: str) -> str:
    return line.partition("  #")[0].strip()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@functools.cache
def _body(code: Code) -> list[str]:
    """The lines without docstrings; of a function also without its head."""
    source = textwrap.dedent(inspect.getsource(code))
    source = re.sub(r'^( +)"""(?:.|\n)*?"""\n', "", source, flags=re.MULTILINE)
    source = re.sub(r"  # (noqa|type: ignore).*", "", source)
    if not isinstance(code, type):
        source = re.sub(r"\Adef (?:.|\n)*?:\n", "", source)
    source = re.sub(r"^( *)(def .*:)\n(?!\1 )", r"\1\2\n\1    pass\n", source, flags=re.MULTILINE)
    return [line for line in textwrap.dedent(source).splitlines() if line.strip()]
