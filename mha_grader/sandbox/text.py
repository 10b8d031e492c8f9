"""Text that comes out of a student's process, made harmless before anybody sees it."""

from __future__ import annotations

import re

TERMINAL_CODES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])")


def without_terminal_codes(text: str) -> str:
    """The text without the sequences that colour a terminal, rename it or move in it."""
    return TERMINAL_CODES.sub("", text)


def clean(text: str, length: int = 300) -> str:
    """The text on one line, short, and without anything that a terminal would act on."""
    text = "".join(c if c.isprintable() else " " for c in without_terminal_codes(text))
    return text if len(text) <= length else text[: length - 1] + "…"
