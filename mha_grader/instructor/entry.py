"""What people and nbgrader add to the scores of one hand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mha_grader.course.records import AnswerRecord, ItemRecord, SubmissionRecord

NOT_MARKED, CHANGED = "not marked yet", "changed since it was marked"


@dataclass(frozen=True)
class Entry:
    """What the gradebook knows about one hand-in beside the scores of the tests."""

    by_hand: Mapping[str, float] = field(default_factory=dict)  # scores that a person changed, by item
    changed: frozenset[str] = frozenset()  # what was marked before the hand-in changed
    comments: Mapping[str, str] = field(default_factory=dict)  # a person's, by item
    late_seconds: float = 0.0
    penalty: float = 0.0

    def item_score(self, item: ItemRecord) -> float:
        """An item's score, as a person left it."""
        return self.by_hand.get(item.item, item.score)

    def mark(self, answer: AnswerRecord) -> float | None:
        """What a person gave an answer; 0 if there is none, and None if a person has yet to mark it."""
        return self.by_hand.get(answer.item, None if answer.written else 0.0)

    def waiting(self, record: SubmissionRecord) -> dict[str, str]:
        """The answers that a person has yet to mark, and why: as long as there are any, the score is not final."""
        found = {answer.item: NOT_MARKED for answer in record.answers if self.mark(answer) is None}
        return found | {
            answer.item: CHANGED
            for answer in record.answers
            if answer.item in self.changed and answer.item in self.by_hand
        }

    def score(self, record: SubmissionRecord) -> float:
        """The score of the hand-in with what people changed and the penalty for being late."""
        others = set(self.by_hand) - {item.item for item in record.items}  # cells that only a person marks
        marked = sum(map(self.item_score, record.items)) + sum(self.by_hand[name] for name in sorted(others))
        return max(0.0, marked - self.penalty)
