"""Parts: the named checks of a hidden test, each worth points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Check = Callable[[np.random.Generator], None]


@dataclass(frozen=True)
class PartHead:
    """What a part says about itself.

    Raises:
        ValueError: if it does not say what it proves, or its points are negative.
    """

    name: str
    points: float
    needs: tuple[str, ...]  # parts of the same item without which this one is not run
    proves: str  # one sentence: what the part shows when it passes

    def __post_init__(self) -> None:
        if not self.proves:
            raise ValueError(f"part {self.name!r} has no docstring: say in one sentence what it proves")
        if not self.points >= 0:
            raise ValueError(f"part {self.name!r} is worth {self.points} points; it cannot be less than 0")


@dataclass(frozen=True)
class Part(PartHead):
    """One named part of a hidden test."""

    example: str | None
    run: Check
    drawn_anew: bool = (
        False  # for each hand-in, from its own bytes too: what was learnt of another one is no help
    )
    in_process: bool = False  # it runs in the student's process, where code can forge a pass


def check_parts(parts: Sequence[PartHead]) -> None:
    """See that the parts of a hidden test belong together.

    Raises:
        ValueError: if there is none, two have one name, or one needs a part that is not before it.
    """
    if not parts:
        raise ValueError("the hidden test defines no part")
    seen: set[str] = set()
    for part in parts:
        if part.name in seen:
            raise ValueError(f"two parts are called {part.name!r}")
        for need in part.needs:
            if need not in seen:
                raise ValueError(f"part {part.name!r} needs {need!r}, which is not a part before it")
        seen.add(part.name)


def part(
    points: float, *, needs: str | Sequence[str] = (), example: str | None = None
) -> Callable[[Check], Part]:
    """Make a part of the decorated function, which gets a random generator with a secret seed.

    Args:
        points: what the part is worth; a literal number, since the notebook's points are read from the text.
        needs: names of parts of the same item without which this one is not run.
        example: expression on a public input, see the package's docstring.

    Raises:
        ValueError: if the function has no docstring to say what it proves, or the points are not positive.
    """

    def decorate(run: Check) -> Part:
        return Part(
            name=run.__name__.replace("_", " "),
            points=float(points),
            needs=tuple(name.replace("_", " ") for name in ([needs] if isinstance(needs, str) else needs)),
            proves=" ".join((run.__doc__ or "").split()),
            example=example,
            run=run,
        )

    return decorate


def part_for_each(check: Callable[[str], None], *, points: float, proves: Mapping[str, str]) -> list[Part]:
    """A part for each of several questions that are checked in the same way, for instance for short answers.

    Args:
        check: raises `Mismatch` if the student's answer to this question is not right.
        points: what each part is worth; a literal number.
        proves: what the part about a question proves, by question; written out, since the points are read from
            the text.
    """

    def about(question: str) -> Check:
        return lambda rng: check(question)

    return [
        Part(question.replace("_", " "), float(points), (), words, None, about(question))
        for question, words in proves.items()
    ]
