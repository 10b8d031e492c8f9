"""What an instructor wants to know of a whole class: one static page, for the screen and for paper.

The page needs no network and no script. Everything in it that came from a student is escaped. It is made from
the stored records: the scores in it are those of the tests. Where what people changed or a penalty makes the final
score another one, a table of its own says so.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from markupsafe import Markup

from mha_grader.course.assignment import Assignment
from mha_grader.course.folders import Course, hand_ins
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import feedback, gradebook, similar
from mha_grader.instructor.entry import Entry
from mha_lib import pitfalls

BINS = 10
ENOUGH = 20  # hand-ins, before anything is said of how items discriminate
GROUP = 0.27  # Kelley (1939), The selection of upper and lower groups for the validation of test items
WEAK = 0.2  # Ebel and Frisbie (1991), Essentials of educational measurement: poor items have a lower index
Records = Mapping[str, SubmissionRecord]


def pseudonym(secret: bytes, student: str) -> str:
    """A name that stands for a student, always the same in one course, and that only its secret can make."""
    digest = hmac.digest(secret, b"pseudonym\0" + student.encode("utf-8", "surrogatepass"), "sha256")
    return f"P-{base64.b32encode(digest[:5]).decode()}"  # 40 bits: a clash among 1,000 is one in two million


def write(
    course: Course,
    assignment: Assignment,
    records: Records,
    entries: Mapping[str, Entry],
    *,
    pseudonyms: bool = False,
) -> Path:
    """Write grades/<assignment>-report.html.

    Args:
        course: the course; folders in its submitted/ that have no record are named in the report.
        assignment: the assignment.
        records: what grading found, by student; at least one.
        entries: what the gradebook has beside it, by student.
        pseudonyms: put pseudonyms for the students' ids, and leave out lines of their code.
    """
    waiting = [folder.parent.name for folder in hand_ins(course.submitted, assignment.name)]
    who = functools.partial(pseudonym, course.secret()) if pseudonyms else str
    without = [student for student in waiting if student not in records]
    text = page(assignment, records, without, who, gradebook.book_url(course), entries)
    path = course.root / "grades" / f"{assignment.name}-report.html"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def page(
    assignment: Assignment,
    records: Records,
    without_record: Sequence[str] = (),
    who: Callable[[str], str] = str,
    book: str = "",
    entries: Mapping[str, Entry] = MappingProxyType({}),
) -> str:
    """The report as HTML.

    Args:
        assignment: the assignment.
        records: what grading found, by student; at least one.
        without_record: students who have handed in and have no record.
        who: what stands for a student's id; with anything but `str`, no line of a student's code is shown.
        book: address of the folder with the book's pages; "" for no links.
        entries: what the gradebook has beside the records, by student.
    """
    usable = {student: record for student, record in records.items() if record.usable}
    style = feedback.render("feedback.css") + feedback.render("report.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    scores = [record.score for record in usable.values()]
    people = needs_a_person(records, without_record, entries, private=who is not str)
    alike = [(sorted(map(who, found.students)), found) for found in similar.find(assignment, usable)]
    return feedback.render(
        "report.html.j2",
        style=Markup(style),
        style_hash=digest,
        title=feedback.title(assignment),
        assignment=assignment,
        sections=feedback.sections(assignment),
        n=len(records),
        usable=len(usable),
        versions=sorted({record.version for record in records.values()}),
        max_score=next(iter(records.values())).max_by_tests,
        quartiles=quartiles(scores),
        mean=statistics.fmean(scores) if scores else 0.0,
        bins=distribution(usable),
        items=[summary(assignment, usable, item) for item in assignment.items],
        misconceptions=misconceptions(usable),
        enough=ENOUGH,
        discrimination=discrimination(usable) if len(usable) >= ENOUGH else None,
        people=sorted((who(student), reasons) for student, reasons in people.items()),
        alike=alike,
        book=book,
        marked=[marking(usable, entries, cell.id) for cell in assignment.marked],
        final=sorted(
            (
                who(student),
                record.score,
                entry.by_hand,
                entry.penalty,
                entry.score(record),
                entry.waiting(record),
            )
            for student, record in records.items()
            if (entry := entries.get(student)) and (entry.by_hand or entry.penalty)
        ),
    )


# --- scores -----------------------------------------------------------------------------------------------


def quartiles(scores: Sequence[float]) -> tuple[float, float, float]:
    """A quarter, the half and three quarters of the scores lie at or below these (0 if there are none)."""
    if len(scores) < 2:
        return (scores[0],) * 3 if scores else (0.0,) * 3
    low, middle, high = statistics.quantiles(scores, n=4, method="inclusive")
    return low, middle, high


def distribution(records: Records) -> list[tuple[str, int]]:
    """How many hand-ins have how many per cent of the points: (range, number) for each tenth."""
    tenths = Counter(
        min(BINS - 1, math.floor(BINS * record.score / (record.max_by_tests or 1.0) + 1e-9))
        for record in records.values()
    )
    width = 100 // BINS
    return [
        (f"{width * i} to {'below ' if i < BINS - 1 else ''}{width * (i + 1)} %", tenths[i])
        for i in reversed(range(BINS))
    ]


# --- items and parts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartSummary:
    """How a class did on one part."""

    name: str
    proves: str
    counts: Mapping[str, int]  # hand-ins by status
    unexplained: int  # failed, and no known mistake was recognised

    @property
    def passed(self) -> float:
        """The share of the hand-ins that passed."""
        return self.counts.get("pass", 0) / max(1, sum(self.counts.values()))


@dataclass(frozen=True)
class ItemSummary:
    """How a class did on one item."""

    item: str
    success: float  # mean share of its points
    full: int  # hand-ins with all of its points
    untouched: int  # hand-ins that have the item as it was released, or not at all
    parts: tuple[PartSummary, ...]


def summary(assignment: Assignment, records: Records, item: str) -> ItemSummary:
    """Count the verdicts on one item."""
    found = [each for record in records.values() for each in record.items if each.item == item]
    released = assignment.cell("solution", item).released.strip()
    parts: dict[str, list[PartRecord]] = {}
    for each in found:
        for part in each.parts:
            parts.setdefault(part.name, []).append(part)
    return ItemSummary(
        item=item,
        success=statistics.fmean(map(_share, found)) if found else 0.0,
        full=sum(each.status == "pass" for each in found),
        untouched=sum(each.source.strip() in ("", released) for each in found),
        parts=tuple(
            PartSummary(
                name=name,
                proves=verdicts[-1].proves,
                counts=Counter(part.status for part in verdicts),
                unexplained=sum(part.status == "fail" and part.pitfall is None for part in verdicts),
            )
            for name, verdicts in parts.items()
        ),
    )


def _share(item: ItemRecord) -> float:
    return item.score / item.max_score if item.max_score else 0.0


@dataclass(frozen=True)
class Marking:
    """How a class did on what a person marks."""

    item: str
    written: int  # hand-ins that have something to mark
    waiting: int  # of these, not marked yet, or changed since
    success: float  # mean share of its points, of all hand-ins that have a mark


def marking(records: Records, entries: Mapping[str, Entry], item: str) -> Marking:
    """Count the marks of one answer."""
    written = waiting = 0
    shares = []
    for student, record in records.items():
        entry = entries.get(student, Entry())
        for answer in record.answers:
            if answer.item == item:
                written += answer.written
                waiting += item in entry.waiting(record)
                mark = entry.mark(answer)
                shares += [] if mark is None else [mark / answer.max_score if answer.max_score else 0.0]
    return Marking(item, written, waiting, statistics.fmean(shares) if shares else 0.0)


# --- misconceptions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Misconception:
    """A mistake that was recognised."""

    slug: str
    title: str
    reason: str
    count: int  # hand-ins
    items: tuple[str, ...]


def misconceptions(records: Records) -> list[Misconception]:
    """The recognised mistakes, the most frequent first; each counts once for a hand-in."""
    count: Counter[str] = Counter()
    items: dict[str, dict[str, None]] = {}
    for record in records.values():
        seen = [(part.pitfall, item.item) for item in record.items for part in item.parts if part.pitfall]
        count.update({slug for slug, _ in seen})
        for slug, item in seen:
            items.setdefault(slug, {})[item] = None
    found = []
    for slug, number in sorted(count.items(), key=lambda pair: (-pair[1], pair[0])):
        known = pitfalls.BANK.get(slug)  # a record may be older than the bank
        title, reason = (known.title, known.reason) if known else (slug, "")
        found.append(Misconception(slug, title, reason, number, tuple(items[slug])))
    return found


# --- discrimination ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Discrimination:
    """Whether those who do well on the other items do well on this one."""

    item: str
    correlation: (
        float | None
    )  # of its score with the score on all other items; None if one of them is constant
    index: float  # mean share of its points in the upper group, less that in the lower group

    @property
    def weak(self) -> bool:
        """Whether the item hardly tells students apart, or does so the wrong way round."""
        return self.correlation is None or self.correlation < WEAK or self.index < WEAK


def discrimination(records: Records) -> list[Discrimination]:
    """How well each item tells students apart.

    The upper and the lower group are the 27 % with the most and with the fewest points on the other items.
    """
    names = dict.fromkeys(item.item for record in records.values() for item in record.items)
    found = []
    for name in names:
        own, rest = [], []
        for record in records.values():
            item = next((each for each in record.items if each.item == name), None)
            if item is not None:
                own.append(_share(item))
                rest.append(record.score - item.score)
        index = _top(own, rest) - _top(own, [-score for score in rest])
        found.append(Discrimination(name, _correlation(own, rest), index))
    return found


def _top(own: Sequence[float], by: Sequence[float]) -> float:
    """The mean of `own` over the `GROUP` with the largest `by`; those who tie at its edge count in part."""
    size = GROUP * len(own)
    ranked = sorted(by, reverse=True)
    edge = ranked[math.ceil(size) - 1]
    above = [value for value, key in zip(own, by, strict=True) if key > edge]
    tied = [value for value, key in zip(own, by, strict=True) if key == edge]
    return (math.fsum(above) + (size - len(above)) * statistics.fmean(tied)) / size


def _correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        return None


# --- what needs a person ----------------------------------------------------------------------------------


def needs_a_person(
    records: Records,
    without_record: Sequence[str] = (),
    entries: Mapping[str, Entry] = MappingProxyType({}),
    *,
    private: bool = False,
) -> dict[str, list[str]]:
    """Hand-ins that a person should look at, and why.

    Args:
        records: what grading found, by student.
        without_record: students who have handed in and have no record.
        entries: what the gradebook has beside the records, by student.
        private: leave out what may hold a name: lines of code, and the names of files.
    """
    found = {
        student: [
            *(f"{item}: {why}" for item, why in entries.get(student, Entry()).waiting(record).items()),
            *_reasons(record, private),
        ]
        for student, record in records.items()
    }
    found |= {student: ["handed in, but not graded yet, or grading failed"] for student in without_record}
    return {student: reasons for student, reasons in found.items() if reasons}


def _reasons(record: SubmissionRecord, private: bool) -> Iterator[str]:
    if not record.usable:
        notes = "" if private or not record.notes else f": {'; '.join(record.notes)}"
        yield f"could not be graded ({record.status}){notes}"
    if record.flags:
        yield "more than one file contains work" if private else "; ".join(record.flags)
    for item in record.items:
        if private and item.flags:
            yield f"{item.item}: {len(item.flags)} to look at in its code"
        elif not private:
            yield from (f"{item.item}: {flag}" for flag in item.flags)
        for status in ("timeout", "memory"):
            if count := sum(part.status == status for part in item.parts):
                yield f"{item.item}: {feedback.STATUS[status]} in {count} of {len(item.parts)} parts"
