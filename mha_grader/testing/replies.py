"""What a reply of the student's process means: a value, or a call that gave none.

A reply may hold anything in any field: the code that it comes from can write it itself.
"""

from __future__ import annotations

from typing import Any

from mha_grader.testing.errors import CallError


def is_answer(request: dict[str, Any], value: Any) -> bool:
    """Whether a value has the form that answers a request; where it is up to the student, any form will do."""
    if request["op"] == "check":
        known = (
            {name: value.get(name) for name in ("accepted", "returned")} if isinstance(value, dict) else {}
        )
        return type(known.get("accepted")) is bool and (
            not known["accepted"] or type(known["returned"]) is bool
        )
    return True


def read_reply(reply: dict[str, Any], target: Any) -> tuple[Any, tuple[str, ...]]:
    """The value in a reply, and the names of the arguments that were changed.

    Which were changed is the word of the student's process: code that rewrites what runs there can lie about it.
    What it wins is the part about unchanged inputs, which a copy at the start of its function would win as well.

    Raises:
        CallError: if the reply stands for one. The line is kept if it is one of the tested item's own cell.
    """
    status = reply["status"]
    if status == "ok":
        changed = reply.get("changed", [])
        names = [name if _is_word(name) else "?" for name in changed] if isinstance(changed, list) else ["?"]
        return reply.get("value"), tuple(names[:100])
    if status in ("memory", "missing"):
        raise CallError(status, text=target if isinstance(target, str) else "")
    types, line, cell, text = (reply.get(field) for field in ("types", "line", "cell", "text"))
    names = [name if _is_word(name) else "Exception" for name in types] if isinstance(types, list) else []
    own_cell = not isinstance(target, str) or (isinstance(cell, str) and cell == target)
    raise CallError(
        "error",
        names[:100] or ["Exception"],
        text[:2000] if isinstance(text, str) else "",
        line if own_cell and type(line) is int and 0 < line < 10**6 else None,
    )


def _is_word(name: Any) -> bool:
    """Whether this can be the name of an argument or of an error: it is shown to people."""
    return isinstance(name, str) and len(name) <= 80 and name.replace("_", "").isalnum()
