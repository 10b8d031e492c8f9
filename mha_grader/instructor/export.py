"""Grades for other programs: a CSV and a JSON file, and CSV files that platforms take.

Moodle, Canvas, Brightspace and Blackboard import grades. Gradescope exports them and takes none back
(https://guides.gradescope.com); Sakai takes them only in the zip file of its own download.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.instructor import origins
from mha_grader.instructor.entry import NOT_MARKED, Entry
from mha_grader.instructor.origins import Origin, Scheme
from mha_grader.instructor.results import Result
from mha_grader.instructor.roster import FORMULA, Student
from mha_grader.sandbox.text import clean
from mha_lib import pitfalls

SEPARATORS = re.compile(r"[;\t\r\n]")  # where some spreadsheets begin a new cell
NOTHING = "nothing handed in"


def write(
    course: Course, assignment: str, everyone: Sequence[Result], nothing: float | None = None
) -> tuple[Path, Path]:
    """Write grades/<assignment>.csv and grades/<assignment>.json.

    Args:
        course: the course.
        assignment: the assignment's name.
        everyone: the students' results; at least one has a record.
        nothing: the score of those who have none; None leaves it empty.

    Returns:
        The paths of the two files.
    """
    example = next(result.record for result in everyone if result.record)
    rows = [
        _row(result, result.record) if result.record else _empty_row(result, example, nothing)
        for result in everyone
    ]
    folder = course.root / "grades"
    folder.mkdir(exist_ok=True)
    table, data = folder / f"{assignment}.csv", folder / f"{assignment}.json"
    _write_table(table, [_flat(row) for row in rows])
    data.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return table, data


def _write_table(path: Path, lines: Sequence[Mapping[str, Any]], quoting: int = csv.QUOTE_MINIMAL) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        columns = max(map(list, lines), key=len)  # strangers to the roster have no names
        writer = csv.DictWriter(file, fieldnames=columns, quoting=quoting)  # type: ignore[arg-type]
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)


def _who(result: Result) -> dict[str, Any]:
    person = result.person or Student(result.student)
    about = {name: getattr(person, name) for name in ("last_name", "first_name", "email", "group")}
    return {"student": result.student} | {name: value for name, value in about.items() if result.person}


def _row(result: Result, record: SubmissionRecord) -> dict[str, Any]:
    entry = result.entry
    waiting = entry.waiting(record)
    answers = {answer.item for answer in record.answers}
    return {
        **_who(result),
        "status": record.status,
        "handed_in_by": result.handed_in_by,
        "score": record.score,  # of the tests alone
        "max_score": record.max_score,  # with what a person marks
        "items": {
            item.item: {"score": item.score, "max_score": item.max_score, "status": item.status}
            for item in record.items
        },
        "marks": {
            answer.item: {
                "score": entry.mark(answer),
                "max_score": answer.max_score,
                "comment": entry.comments.get(answer.item, ""),
            }
            for answer in record.answers
        },
        "not_marked": waiting,
        "by_hand": {name: score for name, score in entry.by_hand.items() if name not in answers},
        "late_seconds": entry.late_seconds,
        "late_penalty": entry.penalty,
        "final_score": final(result),
        "recognised": list(recognised(record)),
        "notes": [*record.notes, *(note for item in record.items for note in item.notes)],
        "flags": [*record.flags, *(flag for item in record.items for flag in item.flags)],
    }


def _empty_row(result: Result, example: SubmissionRecord, nothing: float | None) -> dict[str, Any]:
    """The row of a student without a hand-in, with the points of another's."""
    items = {
        item.item: {"score": nothing, "max_score": item.max_score, "status": "not-run"}
        for item in example.items
    }
    return _row(result, example) | {
        "status": NOTHING,
        "score": nothing,
        "items": items,
        "marks": {
            a.item: {"score": nothing, "max_score": a.max_score, "comment": ""} for a in example.answers
        },
        "not_marked": {},
        "by_hand": {},
        "late_seconds": 0.0,
        "late_penalty": 0.0,
        "final_score": nothing,
        "recognised": [],
        "notes": [],
        "flags": [],
    }


def final(result: Result) -> float | None:
    """The score in the end; None if nothing was graded, or a person has yet to mark something."""
    if result.record is None or result.entry.waiting(result.record):
        return None
    return result.entry.score(result.record)


def not_final(everyone: Sequence[Result]) -> list[str]:
    """Ids of the students with an answer that a person has yet to mark."""
    return [each.student for each in everyone if each.record and each.entry.waiting(each.record)]


def recognised(record: SubmissionRecord) -> tuple[str, ...]:
    """The slugs of all recognised mistakes, each once, in the order of the items."""
    slugs = (part.pitfall for item in record.items for part in item.parts)
    return tuple(dict.fromkeys(slug for slug in slugs if slug))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table: one column for each item, and one for the scores that a person set."""
    before = [name for name in row if name not in ("items", "by_hand", "handed_in_by")]
    before = before[: before.index("max_score") + 1]
    by_person = {"not_marked": " ".join(row["not_marked"])} if row["marks"] else {}
    return {
        **{name: row[name] for name in before},
        **{name: item["score"] for name, item in (row["items"] | row["marks"]).items()},
        **by_person,
        "by_hand": " ".join(f"{name}={score:g}" for name, score in row["by_hand"].items()),
        "late_seconds": f"{row['late_seconds']:.15g}",  # all digits: months have millions
        **{name: row[name] for name in ("late_penalty", "final_score")},
        "recognised": " ".join(row["recognised"]),
        "look_at": "; ".join(map(clean, row["flags"])),
    }


def _cell(value: Any) -> Any:
    """A cell in which no spreadsheet finds a formula; numbers without the dust of adding up."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, str):
        return value
    value = SEPARATORS.sub(",", value)
    return f"'{value}" if FORMULA.match(value) else value


# --- Moodle, Canvas, Brightspace and Blackboard -----------------------------------------------------------


def write_for_platforms(
    course: Course, assignment: str, everyone: Sequence[Result], nothing: float | None = None
) -> list[Path]:
    """Write grades/<assignment>-moodle.csv, -canvas.csv, -brightspace.csv and -blackboard.csv.

    A student whose hand-in was collected from a platform is known there by the number in its archive. One whom the
    roster knows stands in all files, by what it says of the platform; others who were collected stand in no file
    for another platform, and those who were not, in all files, by their id. Only platforms from which something was
    collected get a file, or all if none did. A file without students is not written.

    Args:
        course: the course.
        assignment: the assignment's name.
        everyone: the students' results: the grades are those that people left, with the penalty for being late.
        nothing: the grade of those who have no hand-in; None leaves it empty. So is that of a student whose answer
            a person has yet to mark.
    """
    who = origins.origins(course, assignment)
    points = next(result.record.max_score for result in everyone if result.record)
    used = {origin.scheme for origin in who.values()} & set(PLATFORMS) or set(PLATFORMS)
    written = []
    for platform, line_of in PLATFORMS.items():
        lines = []
        for result in everyone:
            origin = who.get(result.student, Origin("plain"))
            score = final(result) if result.record else nothing
            of_another = origin.scheme not in ("plain", platform)
            line = (
                None
                if of_another and not result.person
                else line_of(result, origin, assignment, score, points)
            )
            if line is not None and platform in used:
                lines.append(line)
        if lines and platform == "canvas":
            lines.insert(
                0, dict.fromkeys(lines[0], "") | {"Student": "    Points Possible", assignment: points}
            )
        path = course.root / "grades" / f"{assignment}-{platform}.csv"
        path.unlink(missing_ok=True)
        if lines:
            _write_table(path, lines, csv.QUOTE_ALL if platform == "blackboard" else csv.QUOTE_MINIMAL)
            written.append(path)
    return written


def _moodle(
    result: Result, origin: Origin, assignment: str, score: float | None, points: float
) -> dict[str, Any] | None:
    """A line of Moodle's grading worksheet, or of a table for the gradebook.

    The worksheet's import asks for Identifier, Grade and Last modified (grade), and finds people by the Identifier
    alone; that of the gradebook maps a column to the ID number or the e-mail address of a user
    (mod/assign/feedback/offline/importgradeslib.php; https://docs.moodle.org/en/Grade_import).
    """
    collected, person = origin.scheme == "moodle", result.person
    words = [NOTHING] if result.record is None else _words(result.record, result.entry)
    return {
        "Identifier": f"Participant {origin.number}" if collected else "",
        "Full name": person.name if person else origin.name,
        "ID number": (person.moodle or person.id) if person else "" if collected else result.student,
        "Email address": person.email if person else "",
        "Grade": score,
        "Maximum Grade": points,
        "Last modified (grade)": "",
        "Feedback comments": "; ".join(words),
    }


def _words(record: SubmissionRecord, entry: Entry) -> list[str]:
    words = [_in_words(item, entry) for item in record.items]
    for answer in record.answers:
        mark = entry.mark(answer)
        words.append(f"{answer.item} {NOT_MARKED if mark is None else f'{mark:g}'}/{answer.max_score:g}")
    return words


def _in_words(item: ItemRecord, entry: Entry) -> str:
    score = f"{item.item} {entry.item_score(item):g}/{item.max_score:g}"
    found = dict.fromkeys(title_of(part).replace("`", "") for part in item.parts)
    titles = [title for title in found if title]
    return f"{score} ({', '.join(titles)})" if titles else score


def title_of(part: PartRecord) -> str:
    """The title of the mistake that was recognised in a part; "" if there is none, or it is no longer known."""
    known = pitfalls.BANK.get(part.pitfall or "")
    return known.title if known and not part.title else part.title


def _canvas(
    result: Result, origin: Origin, assignment: str, score: float | None, points: float
) -> dict[str, Any] | None:
    """A line of Canvas' gradebook.

    Its import wants Student, ID and Section, and looks for the ID, then for the SIS User ID and the SIS Login ID
    (canvas-lms, lib/gradebook_importer.rb; "How do I import grades in the Gradebook?" on
    https://community.canvaslms.com).
    """
    if origin.scheme == "canvas" and origin.number.startswith("anon_") and not result.person:
        return None
    person, own = result.person, origin.scheme == "canvas"
    number = (person.canvas if person else "") or origin.number * own
    login = (person.login or person.id) if person else "" if own else result.student
    return {
        "Student": person.name if person else (origin.name if own else "") or result.student,
        "ID": number,
        "SIS User ID": "",
        "SIS Login ID": "" if number and not person else login,
        "Section": "",
        assignment: score,
    }


def _brightspace(
    result: Result, origin: Origin, assignment: str, score: float | None, points: float
) -> dict[str, Any] | None:
    """A line for the import of Brightspace's grades.

    It wants OrgDefinedId or Username or both, "Points Grade" behind the name of the grade item, and a last column
    that ends the line (https://community.d2l.com/brightspace/kb/articles/3538-importing-grades). What its archives
    tell of a student is neither, so that it takes a roster to write one who was collected from there.
    """
    person = result.person
    if person is None and origin.scheme == "brightspace":
        return None
    return {
        "OrgDefinedId": person.brightspace_org if person else "",
        "Username": (person.login or ("" if person.brightspace_org else person.id))
        if person
        else result.student,
        f"{assignment} Points Grade": score,
        "End-of-Line Indicator": "#",
    }


def _blackboard(
    result: Result, origin: Origin, assignment: str, score: float | None, points: float
) -> dict[str, Any] | None:
    """A line for "Work Offline", "Upload" of Blackboard's Grade Center.

    It finds people by the Username and columns by a number in their heading, which only its own download has; a
    heading without one makes a new column of text. Every cell stands in quotes (library.blackboard.com, "Uploading
    or Downloading Grade Center Items for Working Offline"; https://tips.uark.edu/uploading-your-grade-center/).
    """
    person = result.person
    return {
        "Last Name": person.last_name if person else "",
        "First Name": person.first_name if person else "",
        "Username": (person.login or person.id) if person else origin.number or result.student,
        assignment: score,
    }


Line = dict[str, Any] | None  # None if the platform does not know the student
PLATFORMS: dict[Scheme, Callable[[Result, Origin, str, float | None, float], Line]] = {
    "moodle": _moodle,
    "canvas": _canvas,
    "brightspace": _brightspace,
    "blackboard": _blackboard,
}
