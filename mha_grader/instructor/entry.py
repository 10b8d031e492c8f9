"""What people and nbgrader add to the scores of one hand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mha_grader.course.records import ItemRecord, SubmissionRecord


@dataclass(frozen=True)
class Entry:
    """What the gradebook knows about one hand-in beside the scores of the tests."""

    by_hand: Mapping[str, float] = field(default_factory=dict)  # scores that a person changed, by item
    comments: Mapping[str, str] = field(default_factory=dict)  # a person's, by item
    late_seconds: float = 0.0
    penalty: float = 0.0

    def item_score(self, item: ItemRecord) -> float:
        """An item's score, as a person left it."""
        return self.by_hand.get(item.item, item.score)

    def score(self, record: SubmissionRecord) -> float:
        """The score of the hand-in with what people changed and the penalty for being late."""
        others = set(self.by_hand) - {item.item for item in record.items}  # cells that only a person marks
        marked = sum(map(self.item_score, record.items)) + sum(self.by_hand[name] for name in sorted(others))
        return max(0.0, marked - self.penalty)
