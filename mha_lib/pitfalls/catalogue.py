"""What the book shows of each pitfall: the wrong lines, an input that exposes them, and both results."""

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

from mha_lib.pitfalls import BANK, variants
from mha_lib.pitfalls.examples import Code, items
from mha_lib.pitfalls.weak_checks import WEAK_CHECKS, weak_checks

VISIBLE = 1e-3  # smaller differences are no example
WIDTH = 79  # characters of a line that is shown


@dataclass(frozen=True)
class Exposed:
    """One pitfall, run.

    Attributes:
        place: the item that is shown, `assignment.item`.
        others: further items with this mistake.
        lines: what is wrong in the code; `…` stands for lines that are right.
        helpers: what the lines use and do not show: how it is called, and what it is.
        passes: what the weak checks of this item look at that the code passes.
        input: what kind of input exposes it, in words.
        call: the lines that were run.
        comes, expected: the result of the wrong and of the right code, or the error raised, as text.
    """

    place: str
    others: tuple[str, ...]
    lines: str
    helpers: tuple[tuple[str, str], ...]
    passes: tuple[str, ...]
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
    place, *others = (place for place, item in items().items() if item.examples and slug in _variants(place))
    variant, item, lines = _variants(place)[slug], items()[place], wrong_lines(place, slug)
    checks = [check for check in BANK[slug].passes if check in weak_checks(*place.split("."))]
    for example in item.examples:
        comes, expected = run(example, variant), run(example, item.right)
        if differ(comes, expected):
            return Exposed(
                place=place,
                others=tuple(others),
                lines=lines,
                helpers=tuple(helpers_in(lines, variant)),
                passes=tuple(WEAK_CHECKS[check] for check in checks),
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
    the right code shown. Type hints are left out too, and a shape stands above a line that would be too wide.
    """
    known = set(_lines(items()[place].right)) | _common_lines(place)
    variant, *helpers = _wrong_parts(_variants(place)[slug])
    shown = _without(known, variant)
    for helper in helpers:
        shown += ["", _head(helper), *(f"    {line}" for line in _without(known, helper))]
    return "\n".join(_narrow(line) for line in shown)


def _without(known: set[str], code: Code) -> list[str]:
    """The code without statements all of whose lines are known, unless none would be left."""
    statements = _statements(code)
    definition = [_is_definition(statement) for statement in statements]
    keep = [not {_bare(line) for line in statement} <= known for statement in statements]
    if not any(new and not defined for new, defined in zip(keep, definition, strict=True)):
        keep = [True] * len(statements)
    for at in reversed(range(len(statements))):
        keep[at] |= definition[at]
        if keep[at]:
            for head in _heads_of(at, statements):
                keep[head] = True
    shown: list[str] = []
    for at, statement in enumerate(statements):
        if keep[at]:
            first_of_many = definition[at] and at > 1 and not statements[at - 1][0].strip().startswith("@")
            shown += ["", *statement] if first_of_many else statement
        elif not shown or shown[-1].strip() != "# …":
            shown.append(_indent(statement[0]) + "# …")
    return shown


def _is_definition(statement: list[str]) -> bool:
    return statement[0].strip().startswith(("class ", "def ", "@"))


def _heads_of(at: int, statements: list[list[str]]) -> list[int]:
    """The line that a statement stands under, such as `if …:`, if any; of an `else:` also its `if …:`."""
    depth = len(_indent(statements[at][0]))
    under = statements[at][0].strip().startswith(("else:", "elif ", "except", "finally:"))
    for before in reversed(range(at)):
        indent = len(_indent(statements[before][0]))
        if indent < depth or (under and indent == depth):
            return [before]
    return []


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


def _narrow(line: str) -> str:
    """The comment of a line that is too wide on a line of its own above it."""
    code, mark, comment = line.partition("  # ")
    return f"{_indent(line)}# {comment}\n{code}" if mark and len(line) > WIDTH else line


def _wrong_parts(variant: Code) -> list[Code]:
    """The variant, or what it is made around; and the functions that it uses and that are wrong themselves."""
    made_of = inspect.getclosurevars(variant).nonlocals if isinstance(variant, types.FunctionType) else {}
    parts = [each for each in made_of.values() if callable(each)] or [variant]
    names = re.findall(r"\w+", "\n".join(_body(parts[0])))
    around = vars(sys.modules[parts[0].__module__])
    helpers = [
        around[name] for name in dict.fromkeys(names) if isinstance(around.get(name), types.FunctionType)
    ]
    return parts + [helper for helper in helpers if _is_wrong(helper)]


def _is_wrong(code: Code) -> bool:
    return (code.__doc__ or "").startswith("Wrong: ")


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
    """The lines without docstrings and type hints; of a function also without its head."""
    source = _without_hints(_source(code))
    source = re.sub(r'^( +)"""(?:.|\n)*?"""\n', "", source, flags=re.MULTILINE)
    source = re.sub(r"  # (noqa|type: ignore).*", "", source)
    if not isinstance(code, type):
        source = re.sub(r"\Adef (?:.|\n)*?:\n", "", source)
    source = re.sub(r"^( *)(def .*:)\n(?!\1 )", r"\1\2\n\1    pass\n", source, flags=re.MULTILINE)
    return [line for line in textwrap.dedent(source).splitlines() if line.strip()]


def _head(function: Code) -> str:
    """The line with which a function starts, without type hints."""
    return _without_hints(_source(function)).splitlines()[0]


def _source(code: Code) -> str:
    """The source without the decorators above it, which register it."""
    source = textwrap.dedent(inspect.getsource(code))
    first = ast.parse(source).body[0].lineno
    return "\n".join(source.splitlines()[first - 1 :]) + "\n"


def _without_hints(source: str) -> str:
    """The source with heads of functions, and attributes of classes, without their types."""
    lines = source.splitlines()
    for node in reversed(list(ast.walk(ast.parse(source)))):
        if isinstance(node, ast.FunctionDef):
            for each in ast.walk(node.args):
                if isinstance(each, ast.arg):
                    each.annotation = None
            head = f"{' ' * node.col_offset}def {node.name}({ast.unparse(node.args)}):"
            lines[node.lineno - 1 : node.body[0].lineno - 1] = [head]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            named = f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"
            lines[node.lineno - 1 : node.end_lineno] = [" " * node.col_offset + named]
    return "\n".join(lines) + "\n"


# --- what the wrong lines do not show ----------------------------------------------------------------------


def helpers_in(lines: str, variant: Code) -> list[tuple[str, str]]:
    """What the wrong lines use of the pitfalls' own helpers, and what a method does that is written anew.

    Returns:
        Pairs: how the helper is called, and the first sentence of its docstring; of a method that is written
        anew, that of the right one.
    """
    part = _wrong_parts(variant)[0]
    around = vars(sys.modules[part.__module__])
    tree = ast.parse(as_code(lines))
    found = {name: around[name] for name in names_in(tree) if _is_helper(around.get(name))}
    pairs = [(name + _arguments(helper), _sentence(helper)) for name, helper in found.items()]
    for name in _names_of_methods(tree):
        method = _inherited(name, part)
        if method is not None:
            sentence = _sentence(method)
            anew = name in vars(part)
            pairs.append((name + _arguments(method), f"when right, {_small(sentence)}" if anew else sentence))
    return pairs


def as_code(lines: str) -> str:
    """The shown lines so that Python can read them: in a function, with `...` in the place of `# …`."""
    lines = "\n".join(f"    {line}" for line in lines.replace("# …", "...").splitlines())
    return f"def f():\n{lines}\n"


def names_in(tree: ast.AST) -> list[str]:
    """The names that are used and come from elsewhere: they are nowhere assigned, nor arguments."""
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return list(dict.fromkeys(node.id for node in names if node.id not in own))


def _names_of_methods(tree: ast.AST) -> list[str]:
    """Methods that are defined, or used of `self` and of `super()`."""
    found = [
        node.name if isinstance(node, ast.FunctionDef) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "super()"))
    ]
    return [name for name in dict.fromkeys(found) if name not in ("f", "__init__", "forward", "reset")]


def _inherited(name: str, layer: Code) -> Code | None:
    """The right method of this name, if it is a layer whose bases have one of their own."""
    bases = layer.__mro__[1:] if isinstance(layer, type) else ()
    found = (vars(base)[name] for base in bases if name in vars(base) and not _is_wrong(base))
    method = next(found, None)
    method = method.__func__ if isinstance(method, staticmethod) else method
    right = isinstance(method, types.FunctionType) and method.__module__.startswith("mha_lib.")
    return method if right else None


def _is_helper(value: Any) -> bool:
    """A function or class of the pitfalls that is not wrong."""
    own = isinstance(value, type | types.FunctionType) and value.__module__.startswith("mha_lib.pitfalls.")
    return own and not _is_wrong(value)


def _arguments(helper: Code) -> str:
    """The names of its arguments in parentheses; nothing for a class."""
    if isinstance(helper, type):
        return ""
    return f"({', '.join(name for name in inspect.signature(helper).parameters if name != 'self')})"


def _small(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _sentence(helper: Code) -> str:
    return (inspect.getdoc(helper) or "").split("\n\n")[0].replace("\n", " ")
