"""Parts that judge a checker, an item with which students test a function that somebody else wrote."""

from __future__ import annotations

from typing import Any

import numpy as np

from mha_grader.testing import candidates
from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.parts import Check, Part, PartHead
from mha_lib import pitfalls

RETURNED = " (it returned a value; it should raise an error)"


def checker_heads(item: str, *, right: float, each: float) -> list[PartHead]:
    """What the parts of `checker_parts` say about themselves: the first one, then one for each mistake."""
    accepts = PartHead(
        "accepts what is right",
        float(right),
        (),
        "The check accepts every correct implementation, and rejects at least one mistake.",
    )
    heads = [accepts]
    for spec in candidates.wrong(item):
        slug = spec.split("/", 2)[2]
        proves = f"The check rejects the mistake “{pitfalls.BANK[slug].title}” ({slug})."
        heads.append(PartHead(f"catches {slug}", float(each), (accepts.name,), proves))
    return heads


def checker_parts(check: Any, item: str, *, right: float, each: float) -> list[Part]:
    """Parts that judge a student's checker by the right styles and the known mistakes of an item.

    The checker meets them all mixed, in an order that is drawn for each hand-in from a secret and the hand-in's
    own bytes. So it may count them, and may have learnt from other hand-ins: it can go by nothing but what they
    do. The first part is that it accepts every right style, and some mistake is caught at all; on it rests one part
    for each mistake: that it is caught.

    Args:
        check: the checker.
        item: the checked item as `assignment.item`.
        right: points of the first part.
        each: points for each mistake.
    """
    judged: dict[str, dict[str, Any]] = {}

    def accepts_what_is_right(rng: np.random.Generator) -> None:
        specs = candidates.right(item) + candidates.wrong(item)
        for spec in rng.permutation(specs).tolist():
            judged[spec] = check.check(spec)
        refused = [spec for spec in candidates.right(item) if not judged[spec]["accepted"]]
        if refused and all(_raised(verdict)[0] == "NotImplementedError" for verdict in judged.values()):
            raise CallError("error", ["NotImplementedError"])
        if refused:
            error, text = _raised(judged[refused[0]])
            raise Mismatch(
                f"your check rejects {len(refused)} of {len(candidates.right(item))} correct implementations, for "
                f"instance the one called “{refused[0].split('/', 2)[2]}”, with {error}{text and ': '}{text}"
            )
        if all(judged[spec]["accepted"] for spec in candidates.wrong(item)):
            told = any(verdict.get("returned") for verdict in judged.values())
            raise Mismatch(f"your check accepts everything{RETURNED if told else ''}")

    def catches(spec: str) -> Check:
        def caught(rng: np.random.Generator) -> None:
            if judged[spec]["accepted"]:
                told = RETURNED if judged[spec]["returned"] else ""
                raise Mismatch(f"your check accepts a function with this mistake{told}")

        return caught

    runs = [accepts_what_is_right, *map(catches, candidates.wrong(item))]
    heads = checker_heads(item, right=right, each=each)
    return [
        Part(head.name, head.points, head.needs, head.proves, None, run, drawn_anew=True)
        for head, run in zip(heads, runs, strict=True)
    ]


def _raised(verdict: dict[str, Any]) -> tuple[str, str]:
    """The class and the text of the error with which a checker rejected; both may be anything that it chose."""
    error, text = verdict.get("error"), verdict.get("text")
    name = error[0] if isinstance(error, list) and error and isinstance(error[0], str) else "an error"
    return name[:80], " ".join(text[:200].split()) if isinstance(text, str) else ""
