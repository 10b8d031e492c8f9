"""Hand-ins out of the one zip file that Moodle or Canvas gives an instructor, into submitted/.

`nbgrader zip_collect` is not used for it. It unpacks everything, archives in archives too, without any limit
(one student's zip bomb fills the disk), stops for the whole class at one damaged archive or at two files of one
student, and finds the student anywhere in a path, so that a file's name can hand in for somebody else. Here
nothing is unpacked by the name that it has in the archive: a notebook is read, up to a limit, and written to
the place of the student whom the platform's own part of the name tells. No other file is read.

No timestamp.txt is written, and so nothing is late by these hand-ins: an archive does not say when a hand-in
came. The times in it are when the platform put the archive together or stored the file's content first, and
they have no time zone. Canvas marks late hand-ins in their names; they are named.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import unicodedata
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.grading.rebuild import MAX_BYTES
from mha_grader.instructor import roster
from mha_grader.instructor.roster import SCHEMES, Origin, Scheme, is_student_id

MAX_MEMBERS = 200_000  # files in an archive
MAX_NOTEBOOKS = 10  # of one student; together they may have `rebuild.MAX_BYTES`
MAX_TOTAL = 8 * 2**30  # bytes of all that is written
LONGEST = 100  # bytes of a student's id

# What a platform puts before the name of a student's file, as a folder or as the start of the file's name:
# Full Name_1234567_assignsubmission_file_/…, with the number that Moodle gives a participant of the assignment;
# lastnamefirstname_LATE_12345_678901_…, with Canvas' numbers of the user and of the file, or without a name
# LATE_anon_aB3xY_678901_….
PLATFORM = {
    "moodle": re.compile(r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)", re.DOTALL),
    "canvas": re.compile(
        r"(?:(?P<late_anonymous>LATE_)?(?P<anonymous>anon_[A-Za-z0-9]+)|(?P<name>.+?)(?P<late>_LATE)?_(?P<number>\d+))"
        r"_(?:\d+_(?P<file>.+)|text\.html|link\.html)",
        re.DOTALL,
    ),
}


@dataclass
class Collected:
    """What became of an archive: students by what was done, and names of files that are nobody's."""

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    without_notebook: list[str] = field(default_factory=list)  # they get an empty folder, graded as missing
    refused: dict[str, str] = field(default_factory=dict)  # and why; what was there is still there
    late: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # files that belong to no student


@dataclass(frozen=True)
class _File:
    origin: Origin
    name: str
    info: zipfile.ZipInfo


def collect(course: Course, assignment: str, archive: Path, scheme: Scheme | None = None) -> Collected:
    """Write the notebooks of an archive to submitted/<student>/<assignment>/.

    What a student handed in before is replaced, with its timestamp.txt, unless it is the same notebook.

    Args:
        course: the course.
        assignment: the assignment's name.
        archive: the zip file.
        scheme: how its files are named; it is guessed from the names if None.

    Raises:
        CourseError: if it is no zip file, holds no hand-in of that scheme, or is too large.
    """
    try:
        opened = zipfile.ZipFile(archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise CourseError(f"cannot read {archive} as a zip file: {error}") from None
    with opened:
        return _collect(course, assignment, opened, scheme)


def _collect(course: Course, assignment: str, archive: zipfile.ZipFile, scheme: Scheme | None) -> Collected:
    members = [info for info in archive.infolist() if not info.is_dir()]
    if len(members) > MAX_MEMBERS:
        raise CourseError(f"the archive holds {len(members)} files, and {MAX_MEMBERS} are allowed")
    result = Collected()
    scheme = scheme or guess(map(_name, members))
    files = []
    for info in members:
        file = _whose(scheme, assignment, info)
        if file is None:
            result.left_out.append(_name(info))
        else:
            files.append(file)
    if not files:
        raise CourseError(f"no file in the archive is named as a hand-in is named by the scheme {scheme!r}")
    known = roster.origins(course, assignment)
    ids = _ids({file.origin for file in files}, known)
    of: defaultdict[str, list[_File]] = defaultdict(list)
    for file in files:
        of[ids[file.origin]].append(file)
    chosen = {student: choose(assignment, of[student]) for student in sorted(of)}
    for student, notebooks in chosen.items():
        if len(notebooks) > MAX_NOTEBOOKS:
            result.refused[student] = f"{len(notebooks)} notebooks, and none is {assignment}.ipynb"
        elif sum(info.file_size for info in notebooks.values()) > MAX_BYTES:
            result.refused[student] = f"more than {MAX_BYTES // 2**20} MB"
    total = sum(
        info.file_size for student in chosen.keys() - result.refused for info in chosen[student].values()
    )
    if total > MAX_TOTAL:
        raise CourseError(
            f"the notebooks have {total} bytes, and {MAX_TOTAL} are allowed: nothing was written"
        )
    for student, notebooks in chosen.items():
        if student not in result.refused:
            _write(course.submitted / student, assignment, archive, notebooks, student, result)
    who = {student: of[student][0].origin for student in chosen}
    result.late = [student for student, origin in who.items() if origin.late]
    roster.save(course, assignment, known | who)
    return result


# --- whose a file is --------------------------------------------------------------------------------------


def _name(info: zipfile.ZipInfo) -> str:
    """A member's name. Not every program says that it writes UTF-8 when it does."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def guess(names: Iterable[str]) -> Scheme:
    """The scheme that an archive's names follow: a platform's if any of them does."""
    pieces = [piece for name in names for piece in name.split("/")]
    for scheme in SCHEMES:
        if scheme in PLATFORM and any(PLATFORM[scheme].fullmatch(piece) for piece in pieces):
            return scheme
    return "plain"


def _whose(scheme: Scheme, assignment: str, info: zipfile.ZipInfo) -> _File | None:
    pieces = _name(info).split("/")
    odd = any(piece in ("", ".", "..") or "\\" in piece or "\0" in piece for piece in pieces)
    if odd or pieces[0] == "__MACOSX":
        return None
    if scheme == "plain":
        inside = pieces[1:-1]
        if len(pieces) < 2 or inside not in ([], [assignment]):
            return None
        return _file(Origin("plain", pieces[0]), pieces[-1], info)
    # The first piece that fits is the platform's; what comes after it is the student's.
    for number, piece in enumerate(pieces):
        if match := PLATFORM[scheme].fullmatch(piece):
            found = match.groupdict(default="")
            late = bool(found.get("late") or found.get("late_anonymous"))
            name, known_as = found["name"].strip(), found["number"] or found.get("anonymous", "")
            last = number == len(pieces) - 1
            return _file(Origin(scheme, name, known_as, late), found["file"] if last else pieces[-1], info)
    return None


def _file(origin: Origin, name: str, info: zipfile.ZipInfo) -> _File | None:
    fits = all(
        is_student_id(text) and len(text.encode()) <= LONGEST for text in (origin.name, origin.number) if text
    )
    return _File(origin, name, info) if fits else None


def _ids(found: Collection[Origin], known: Mapping[str, Origin]) -> dict[Origin, str]:
    """The id of each student in an archive: for Canvas the user's number, else the name.

    Moodle's number belongs to one assignment, so it is no id; it is added to a name that several have, and to one
    that is another's id, since students can choose the name that Moodle shows.
    """
    same = {(origin.name, origin.number): student for student, origin in known.items()}
    several = Counter(origin.name for origin in found)
    ids = {}
    taken = set(known)
    for origin in sorted(found, key=lambda origin: (origin.name, origin.number)):
        student = origin.number if origin.scheme == "canvas" else origin.name
        if (origin.name, origin.number) in same:
            student = same[origin.name, origin.number]
        elif origin.scheme == "moodle":
            if several[origin.name] > 1:
                student = f"{origin.name} ({origin.number})"
            while student in taken:
                student = f"{student} ({origin.number})"
        ids[origin] = student
        taken.add(student)
    return ids


# --- what is taken ----------------------------------------------------------------------------------------


def choose(assignment: str, files: Iterable[_File]) -> dict[str, zipfile.ZipInfo]:
    """The notebooks of a student that are written, by the name that they get.

    That is the one with the assignment's name; Canvas adds -1, -2, … to a name that a student hands in again,
    and the highest is the last. If there is none, it is all notebooks, and grading says what is wrong.
    """
    notebooks = [file for file in files if file.name.lower().endswith(".ipynb")]
    own = re.compile(rf"{re.escape(assignment)}(?:-(\d{{1,9}}))?\.ipynb")
    numbered = []
    for file in notebooks:
        match = own.fullmatch(file.name)
        if match and (match[1] is None or file.origin.scheme == "canvas"):
            numbered.append((int(match[1] or 0), file.info))
    if numbered:
        return {f"{assignment}.ipynb": max(numbered, key=lambda pair: pair[0])[1]}
    return {_safe(file.name): file.info for file in notebooks}


def _safe(name: str) -> str:
    """A file's name without what a file system or a shell could take for something else."""
    stem = re.sub(r"[^\w ()+-]", "_", name[: -len(".ipynb")])
    return f"{stem[:60]}.ipynb"


def _write(
    home: Path,
    assignment: str,
    archive: zipfile.ZipFile,
    notebooks: Mapping[str, zipfile.ZipInfo],
    student: str,
    result: Collected,
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    folder = home / assignment
    with tempfile.TemporaryDirectory(dir=home, prefix=".collecting-") as temporary:
        fresh = Path(temporary) / assignment
        fresh.mkdir()
        try:
            for name, info in notebooks.items():
                with archive.open(info) as source, (fresh / name).open("xb") as target:
                    shutil.copyfileobj(source, target)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            # RuntimeError: encrypted; NotImplementedError: compressed in a way that Python does not know.
            result.refused[student] = f"damaged or not readable: {error}"
            return
        if not notebooks:
            result.without_notebook.append(student)
        if not folder.exists() and not folder.is_symlink():
            result.new.append(student)
        elif dict(_contents(folder)) == dict(_contents(fresh)):
            result.unchanged.append(student)
            return
        else:
            result.replaced.append(student)
            folder.rename(Path(temporary) / "before")
        fresh.rename(folder)


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.glob("*.ipynb"):
        yield path.name, b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
