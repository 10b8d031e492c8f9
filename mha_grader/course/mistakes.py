"""Known mistakes of a course of one's own: a file beside the source, `solutions/<assignment>_mistakes.py`.

    from mha_grader.course.mistakes import mistake

    @mistake(
        "layer_norm",
        "no-epsilon",
        title="Divides by a standard deviation of 0",
        reason="a row of equal numbers has variance 0, and 0 / 0 is NaN",
        fix="Add epsilon to the variance before you take its root.",
    )
    def no_epsilon(x, epsilon=1e-5):
        return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)

The code is wrong in exactly one way. If a hand-in gives what it gives, the student reads the words. This course's
own mistakes stand in `mha_lib.pitfalls`, since its book shows them, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mha_grader.course.errors import CourseError

Code = TypeVar("Code", bound=Callable[..., Any])
ENDING = "_mistakes.py"
_found: list[Mistake] = []  # by the decorator, since a file was last read


@dataclass(frozen=True)
class Mistake:
    """A mistake in words and in code."""

    item: str
    slug: str  # its name, for instance no-epsilon
    title: str  # what the code does, in a few words
    reason: str  # one sentence to the student that says why it is wrong
    fix: str  # one sentence that says what to do
    code: Callable[..., Any]


def mistake(item: str, slug: str, *, title: str, reason: str, fix: str) -> Callable[[Code], Code]:
    """A decorator: this function or class makes a mistake in the item; see `Mistake` for the words."""

    def remember(code: Code) -> Code:
        _found.append(Mistake(item, slug, title, reason, fix, code))
        return code

    return remember


def read(path: Path) -> tuple[Mistake, ...]:
    """The mistakes that a file defines, in its order; none if there is no such file.

    Raises:
        CourseError: if it cannot be executed, or two of an item have one slug.
    """
    if not path.exists():
        return ()
    _found.clear()
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), {"__name__": path.stem})
    except Exception as error:
        raise CourseError(f"{path.name} cannot be executed: {type(error).__name__}: {error}") from error
    names = [(each.item, each.slug) for each in _found]
    for item, slug in names:
        if names.count((item, slug)) > 1:
            raise CourseError(f"{path.name} has two mistakes {slug!r} of {item}")
    return tuple(_found)
