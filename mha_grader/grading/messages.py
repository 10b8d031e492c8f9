"""The words about a verdict: what students are told of an error, of time and memory, and of a known mistake.

What is said about a known mistake itself stands in `mha_lib.pitfalls.words` or in the assignment's own file of
mistakes; what a part proves, in the assignment's source; what a comparison says, in `mha_grader.testing`.
"""

from __future__ import annotations

import re
import types
from collections.abc import Container, Mapping

from mha_grader.course.mistakes import Mistake
from mha_grader.course.records import Status
from mha_grader.sandbox.text import clean
from mha_grader.testing.errors import CallError
from mha_lib import pitfalls

# Errors whose texts speak of names and types of the code, not of the numbers that it was given.
ABOUT_CODE = frozenset(
    {
        "NameError",
        "UnboundLocalError",
        "AttributeError",
        "TypeError",
        "ModuleNotFoundError",
        "NotImplementedError",
    }
)
RAISED = "your code raised"
NOT_WRITTEN = "it is not written yet: it raises NotImplementedError"
TIME_USED_UP = "the time for this item is used up"
NOT_RUN = "not run, "  # before the reason
OTHER_KIND = "the result is not of the kind that the item asks for"


def describe_error(error: CallError, show_text: bool = False) -> tuple[Status, str]:
    """Status and words for a call without result.

    The error's own text is shown on public inputs; on hidden ones if it speaks of code, and then without numbers.
    """
    if error.kind == "timeout":
        return "timeout", "your code did not finish within its time limit"
    if error.kind == "memory":
        return "memory", "your code used more memory than it is allowed to use"
    if error.kind == "missing":
        return "error", f"the name {error.text!r} is not defined after your cell has run"
    if error.kind == "died":
        return "error", "the process that ran your code ended"
    if error.type_names[0] == "NotImplementedError" and not error.text:  # a library says what it lacks
        return "error", NOT_WRITTEN
    place = f" on line {error.line} of your cell" if error.line else ""
    text = clean(error.text) if show_text else _about_code(error)
    text = f": {text}" if text else ""
    return "error", f"{RAISED} {clean(error.type_names[0])}{place}{text}"


def _about_code(error: CallError) -> str:
    """The error's text without its numbers, if it speaks of code; else nothing."""
    return clean(re.sub(r"\d+", "#", error.text), 120) if error.type_names[0] in ABOUT_CODE else ""


def rests_on(part: str) -> str:
    """Why a part is not run when the part that it needs has failed."""
    return f"{NOT_RUN}since it rests on the part “{part}”"


def account(slug: str, own: Mapping[str, Mistake] = types.MappingProxyType({})) -> str:
    """What a mistake is, why it is wrong, what to do, and where the book shows it, if it does."""
    if slug in own:
        return f"{own[slug].title} ({slug}). {own[slug].reason} {own[slug].fix}"
    pitfall = pitfalls.BANK[slug]
    return f"{pitfall.title} ({slug}). {pitfall.reason} {pitfall.fix} {pointer(slug)}"


def section_of(slug: str) -> tuple[str, str]:
    """Where the book shows a mistake: the title of the page, and the section's address inside the book."""
    (family,) = (name for name, mistakes in pitfalls.FAMILIES.items() if pitfalls.BANK[slug] in mistakes)
    page = f"pitfalls_{family.replace('-', '_')}.html"
    return f"Pitfalls: {family.replace('-', ' ')}", f"{page}#{slug}"


def pointer(slug: str) -> str:
    """One sentence that says where in the book a mistake is shown."""
    title, address = section_of(slug)
    return f"The book runs it: {title}, {address}."


def capital(text: str, names: Container[str]) -> str:
    """The text with its first letter in capitals, unless it starts with a name of the code."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first not in names else text
