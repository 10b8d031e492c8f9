"""Feedback for students: one static page each, and the same words in short for the graded notebook.

A page needs no network and no script and is self-contained. Everything in it that came from a student is
escaped, and control characters are made visible; nothing in it comes from a hidden test but what
`mha_grader.course.records` allows.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
import unicodedata
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mha_grader.course import store
from mha_grader.course.assignment import Assignment, CourseError, load_assignment
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, PartRecord, SubmissionRecord
from mha_grader.grading.explain import reason, repeats
from mha_grader.grading.messages import NOT_WRITTEN, section_of
from mha_grader.instructor import gradebook, origins
from mha_grader.instructor.entry import Entry
from mha_grader.instructor.origins import Origin
from mha_grader.sandbox.text import without_terminal_codes
from mha_lib import pitfalls

STATUS = {
    "pass": "passed",
    "fail": "not passed",
    "error": "error",
    "timeout": "out of time",
    "memory": "out of memory",
    "not-run": "not run",
}
SEVERAL = 4  # parts in a row with one verdict are shown together
LEAD = 180  # words about mistakes at the top
UNUSABLE = "Nothing in your hand-in could be graded"


def plain(text: str) -> str:
    """The text without terminal sequences; other control and layout characters become visible."""
    if text.isprintable():  # as most is
        return text
    return "".join(
        c
        if c.isprintable() or c in "\n\t"
        else " "
        if unicodedata.category(c) == "Zs"
        else "\N{REPLACEMENT CHARACTER}"
        for c in without_terminal_codes(text.replace("\r\n", "\n"))
    )


def prose(text: str) -> Markup:
    """One of our own sentences as HTML: what stands between backticks is code."""
    pieces = [
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(plain(text).split("`"))
    ]
    return Markup("").join(pieces)


def sentence(text: str) -> str:
    """A note with a capital at its start and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


@dataclass(frozen=True)
class Lead:
    """A reason for which points were lost, told at the top of the page."""

    part: PartRecord  # where it is told
    points: float  # that it costs, with the parts that rest on failed ones
    items: tuple[str, ...]
    told: frozenset[tuple[str, str]]  # items and names of parts about which there is nothing more to say


def leads(record: SubmissionRecord) -> list[Lead]:
    """The one or two reasons that cost most: two if the second costs a third of the first and both fit."""
    found: dict[str, Lead] = {}
    for item in record.items:
        roots: dict[str, PartRecord] = {}
        for part in item.parts:
            rests_on = re.search("“(.+)”", part.reason or part.message) if part.status == "not-run" else None
            root = roots[part.name] = roots.get(rests_on[1], part) if rests_on else part
            if root.status in ("pass", "not-run"):
                continue
            key = _kind(item, root)
            old = found.get(key, Lead(root, 0.0, (), frozenset()))
            same = part is root and reason(root) == reason(old.part)
            told = old.told | ({(item.item, part.name)} if same else set())
            items = tuple(dict.fromkeys((*old.items, item.item)))
            found[key] = Lead(old.part, old.points + part.max_points, items, told)
    ranked = sorted(found.values(), key=lambda lead: -lead.points)[:2]
    both = len(ranked) == 2 and ranked[1].points >= ranked[0].points / 3 and sum(map(_words, ranked)) <= LEAD
    return ranked if both else ranked[:1]


def _kind(item: ItemRecord, part: PartRecord) -> str:
    """The mistake, if it has a name; else what was found in this item, whatever the numbers are."""
    first = part.message.partition("\n")[0]
    if part.pitfall or part.reason == NOT_WRITTEN:
        return part.pitfall or first
    return f"{item.item} {re.sub(r'[0-9]+', '#', first)}"


def _words(lead: Lead) -> int:
    return len(lead.part.message.split())


def groups(item: ItemRecord) -> list[list[PartRecord]]:
    """The parts in their order; a run of several with one verdict for one reason is one group."""
    found: list[list[PartRecord]] = []
    for _, run in itertools.groupby(item.parts, lambda p: (verdict_on(p), p.pitfall or p.message)):
        parts = list(run)
        found += [parts] if len(parts) >= SEVERAL else [[part] for part in parts]
    return found


def mistakes(item: ItemRecord) -> list[str]:
    """Slugs of the recognised mistakes in an item, each once."""
    return list(dict.fromkeys(p.pitfall for p in item.parts if p.pitfall and p.pitfall in pitfalls.BANK))


def place_of(slug: str, book: str) -> Markup:
    """Where the book shows a mistake: a link if the book's address is known, else the page's name."""
    title, address = section_of(slug)
    if not book:
        return Markup("<em>{}</em>, <code>{}</code>").format(title, address)
    return Markup('<a href="{}/{}">{}</a>').format(book.rstrip("/"), address, title)


def verdict_on(part: PartRecord) -> str:
    """The part's status in words."""
    return "passed with correct code" if part.carried else STATUS[part.status]


def twice(item: ItemRecord) -> str:
    """That an item was tested a second time, and why; "" if it was not."""
    if not item.stood_in:
        return ""
    names = listed([f"`{name}`" for name in item.stood_in])
    return (
        f"This item was tested twice: with your code alone, and with correct code for {names}, where your code "
        "alone did not pass. A part counts if it passes either way."
    )


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mha_grader.instructor"),
        autoescape=lambda name: name is None or not name.endswith(".txt.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "prose": prose, "points": "{:g}".format}
    environment.filters |= {"sentence": sentence, "repeats": repeats, "groups": groups, "mistakes": mistakes}
    environment.filters |= {"place_of": place_of, "verdict_on": verdict_on, "twice": twice}
    environment.globals |= {"STATUS": STATUS, "UNUSABLE": UNUSABLE, "BANK": pitfalls.BANK}
    return environment


_ENVIRONMENT = _environment()


def render(template: str, **names: Any) -> str:
    """Fill in one of the templates in templates/."""
    return _ENVIRONMENT.get_template(template).render(names)


def page(assignment: Assignment, student: str, record: SubmissionRecord, entry: Entry, book: str = "") -> str:
    """The page of one student, as HTML.

    Args:
        assignment: the assignment; its title and the sections of the book are taken from it.
        student: the student's id.
        record: what grading found.
        entry: what people added; `Entry()` if nothing.
        book: address of the folder with the book's pages; "" for no links.
    """
    style = render("feedback.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return render(
        "feedback.html.j2",
        style=Markup(style),
        style_hash=digest,
        title=title(assignment),
        sections=sections(assignment),
        student=student,
        record=record,
        leads=leads(record) if record.usable else [],
        rubrics=assignment.rubrics,
        entry=entry,
        book=book,
    )


def title(assignment: Assignment) -> str:
    """The heading of the notebook."""
    heading = re.search(r"^# (.+)$", assignment.cells[0].released, re.MULTILINE)
    return heading[1] if heading else assignment.name


def sections(assignment: Assignment) -> dict[str, str]:
    """Where the book explains each item, in the words of the text above its cell: after **Book**."""
    found: dict[str, str] = {}
    text = ""
    for cell in assignment.cells:
        if cell.kind == "markdown":
            text = cell.released
        elif cell.kind == "solution" and cell.item is not None:
            place = re.search(r"\*\*Book\*\*\s+(.+?)(\n\n|$)", text, re.DOTALL)
            if place:
                found[cell.item] = " ".join(place[1].replace("*", "").split())
    return found


def page_of(course: Course, assignment: str, student: str) -> str:
    """The page of a student whose hand-in has been graded.

    Raises:
        CourseError: if it has not.
    """
    record = store.load(course.grades(assignment), student)
    if record is None:
        raise CourseError(
            f"the hand-in of {student!r} has not been graded: run `mha-grade grade {assignment}`"
        )
    entry = gradebook.read(course, assignment, student).get(student, Entry())
    book = gradebook.book_url(course)
    return page(load_assignment(course.root, assignment), student, record, entry, book)


def write(
    course: Course,
    assignment: Assignment,
    records: Mapping[str, SubmissionRecord],
    entries: Mapping[str, Entry],
) -> Sequence[Path]:
    """Write the pages of students where nbgrader's exchange looks for them.

    Returns:
        The pages' paths: feedback/<student>/<assignment>/<assignment>.html.
    """
    paths, book = [], gradebook.book_url(course)
    for student, record in records.items():
        folder = course.root / "feedback" / student / assignment.name
        folder.mkdir(parents=True, exist_ok=True)
        text = page(assignment, student, record, entries.get(student, Entry()), book)
        path = folder / f"{assignment.name}.html"
        path.write_text(text, encoding="utf-8", newline="\n")
        paths.append(path)
        for name in ("timestamp.txt", "submission_secret.txt"):  # the exchange asks for them
            graded = course.root / "autograded" / student / assignment.name / name
            if graded.exists():
                (folder / name).write_bytes(graded.read_bytes())
    return paths


def write_zip(course: Course, assignment: str, pages: Mapping[str, Path]) -> Path:
    """Put pages into one archive, feedback/<assignment>.zip, by the names that a platform takes.

    Args:
        course: the course.
        assignment: the assignment's name.
        pages: the page of each student.
    """
    who = origins.origins(course, assignment)
    path = course.root / "feedback" / f"{assignment}.zip"
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for student, page in pages.items():
            name = _name_in_zip(student, who.get(student, Origin("plain")), assignment)
            # With one time for all, the same pages make the same archive.
            archive.writestr(zipfile.ZipInfo(name), page.read_bytes(), zipfile.ZIP_DEFLATED)
    os.replace(part, path)
    return path


def _name_in_zip(student: str, origin: Origin, assignment: str) -> str:
    """What a page is called in an archive: by the student's id, or as the platform finds the student again.

    Moodle's "Upload multiple feedback files in a zip" asks for Name_Number_assignsubmission_file_ and goes by the
    number (mod/assign/feedback/file/importziplib.php). Canvas takes the first two pieces between underscores that
    are numbers: the user's, and that of a file in the user's own hand-in (canvas-lms,
    `infer_comment_context_from_filename`). Sakai's "Upload all" wants its own folders with Feedback Attachment(s)
    in them (https://support.apu.edu, "How to Grade Assignments in Bulk"), and Brightspace's "Add feedback files"
    the folders of the download unchanged; the programs of these two were not read. Blackboard and Gradescope have
    no upload of files for a class.
    """
    page = f"{assignment}.html"
    if origin.scheme == "moodle":
        return f"{origin.name}_{origin.number}_assignsubmission_file_/{page}"
    if origin.scheme == "sakai" and origin.place:
        return f"{origin.place}Feedback Attachment(s)/{page}"
    if origin.scheme in ("canvas", "brightspace") and origin.place:
        return f"{origin.place}{page}"
    return f"{student}/{page}"
