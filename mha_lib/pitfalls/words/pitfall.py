"""What is told of one mistake."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pitfall:
    """One mistake in words.

    Attributes:
        slug: its name, in kebab-case; never changed once used.
        title: what the code does, in a few words.
        symptom: what one sees when the code runs.
        reason: one sentence to the student that says why it is wrong.
        fix: one sentence that says what to do.
        passes: the weak checks, by name, that every variant passes: why it goes unnoticed.
    """

    slug: str
    title: str
    symptom: str
    reason: str
    fix: str
    passes: tuple[str, ...]
