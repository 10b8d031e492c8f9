"""What grading returns: plain records that go to JSON and back.

Grading one submission is a pure task. It returns a `SubmissionRecord`; nothing else leaves it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Status = Literal["pass", "fail", "error", "timeout", "memory", "not-run"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class PartRecord:
    """The verdict on one named part of an item's hidden test."""

    name: str
    max_points: float
    status: Status
    proves: str = ""  # one sentence: what the part shows when it passes
    pitfall: str | None = None  # slug of the recognised misconception
    message: str = ""  # for the student: the misconception or the reason, and what to do or a public example
    reason: str = ""  # what the test found, in a few words
    title: str = ""  # of the misconception
    in_process: bool = False  # it ran in the student's process, where code can forge a pass
    carried: bool = False  # it passed only with right code for earlier items, see `ItemRecord.stood_in`

    @property
    def points(self) -> float:
        """All of the part's points if it passed, else none: only positive evidence earns points."""
        return self.max_points if self.status == "pass" else 0.0


@dataclass(frozen=True)
class ItemRecord:
    """The verdict on one item: a function, a class or a dict of answers that the student wrote."""

    item: str
    parts: tuple[PartRecord, ...]
    source: str = ""  # the student's cell, as it was graded
    notes: tuple[str, ...] = ()  # for the student: e.g. which of two copies of a cell was graded
    flags: tuple[str, ...] = ()  # for the instructor: lines that a person should look at
    tests: str = ""  # digest of what it was tested with
    # Earlier items that lost points: it was tested with right code for them, too.
    stood_in: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The sum of the parts' points."""
        return sum(part.points for part in self.parts)

    @property
    def max_score(self) -> float:
        """The points that a right answer earns."""
        return sum(part.max_points for part in self.parts)

    @property
    def earned_alone(self) -> bool:
        """Whether every part passed with the student's own code."""
        return all(part.status == "pass" and not part.carried for part in self.parts)

    @property
    def status(self) -> Status:
        """`pass` if every part passed, else the status of the first part that did not."""
        return next((part.status for part in self.parts if part.status != "pass"), "pass")


@dataclass(frozen=True)
class AnswerRecord:
    """What a person marks. The marks are nobody's verdict here: they stand in nbgrader's gradebook."""

    item: str
    max_score: float
    text: str  # the student's; "" for a task, whose answer stands in other cells
    written: bool  # False if it is as it was released: then it has 0 points without a person


@dataclass(frozen=True)
class SubmissionRecord:
    """The verdict on one hand-in.

    `status` says what the file was: `graded` (as handed in), `repaired` (graded after something was put
    right, see `notes`), or the reason why nothing in it could be graded: `missing`, `not-a-file` (a link, which
    is not followed, a pipe …), `not-json`, `not-utf-8`, `not-a-notebook`, `another-assignment` (the notebook of
    another one), `too-large`, `unreadable`. A hand-in that could not be graded still has a record of every item,
    with each part `not-run`.
    """

    assignment: str
    version: str  # version of the assignment, tests included
    submission: str  # sha256 of the bytes that were handed in ("" if nothing was)
    status: str
    items: tuple[ItemRecord, ...]
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # for the instructor: what a person should look at beside the items
    answers: tuple[AnswerRecord, ...] = ()  # that a person marks
    changes: tuple[str, ...] = field(default=(), compare=False)  # for the instructor: what regrading changed
    log: tuple[str, ...] = field(default=(), compare=False)  # for the instructor: what happened when

    @property
    def usable(self) -> bool:
        """Whether there was something to grade."""
        return self.status in ("graded", "repaired")

    @property
    def score(self) -> float:
        """The sum of the items' scores: what the tests gave."""
        return sum(item.score for item in self.items)

    @property
    def max_by_tests(self) -> float:
        """The points that the tests give to a right hand-in."""
        return sum(item.max_score for item in self.items)

    @property
    def max_score(self) -> float:
        """The points that a right hand-in earns, by the tests and from a person."""
        return self.max_by_tests + sum(answer.max_score for answer in self.answers)


def to_json(record: SubmissionRecord) -> dict[str, Any]:
    """The record as plain data for `json.dump`, with the scores written out for other readers."""
    data = dataclasses.asdict(record)
    data["score"], data["max_score"] = record.score, record.max_score
    for item, item_data in zip(record.items, data["items"], strict=True):
        item_data |= {"score": item.score, "max_score": item.max_score, "status": item.status}
        for part, part_data in zip(item.parts, item_data["parts"], strict=True):
            part_data["points"] = part.points
    return data


def from_json(data: dict[str, Any]) -> SubmissionRecord:
    """The inverse of `to_json`; the scores are computed again, not read."""
    items = tuple(
        ItemRecord(
            item=item["item"],
            parts=tuple(
                PartRecord(**{f.name: part[f.name] for f in dataclasses.fields(PartRecord) if f.name in part})
                for part in item["parts"]
            ),
            source=item["source"],
            notes=tuple(item["notes"]),
            flags=tuple(item["flags"]),
            tests=item["tests"],
            stood_in=tuple(item.get("stood_in", ())),
        )
        for item in data["items"]
    )
    return SubmissionRecord(
        assignment=data["assignment"],
        version=data["version"],
        submission=data["submission"],
        status=data["status"],
        items=items,
        notes=tuple(data["notes"]),
        flags=tuple(data.get("flags", ())),
        answers=tuple(AnswerRecord(**answer) for answer in data.get("answers", ())),
        changes=tuple(data.get("changes", ())),
        log=tuple(data["log"]),
    )
