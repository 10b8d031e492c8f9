"""How a hidden test ends early: the result is not what was expected, or there is none."""

from __future__ import annotations

from collections.abc import Sequence


class Mismatch(Exception):  # noqa: N818 - it is a verdict, not a fault
    """The student's result is not what was expected. The message may be shown to the student."""


class CallError(Exception):
    """Calling the student's code gave no result.

    Attributes:
        kind: `error` (it raised), `timeout`, `memory`, `missing` (no such name), or `died` (the process ended).
        type_names: names of the exception's class and its bases, most special first (`error` only).
        text: the exception's own text. It may repeat a hidden input: never show it to a student. Of `missing`,
            the name.
        line: line of the student's cell, counted from 1, where it was raised, if known.
    """

    def __init__(self, kind: str, type_names: Sequence[str] = (), text: str = "", line: int | None = None):
        super().__init__(kind, tuple(type_names), text, line)
        self.kind, self.type_names, self.text, self.line = kind, tuple(type_names), text, line
