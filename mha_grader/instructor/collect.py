"""Hand-ins out of the one zip file that a platform gives an instructor, into submitted/.

`nbgrader zip_collect` is not used for it. It unpacks everything, archives in archives too, without any limit
(one student's zip bomb fills the disk), stops for the whole class at one damaged archive or at two files of one
student, and finds the student anywhere in a path, so that a file's name can hand in for somebody else. Here
nothing is unpacked by the name that it has in the archive: a notebook is read, up to a limit, and written to
the place of the student whom the platform's own part of the name tells (see `schemes`). What does not fit is listed
and not taken, and what somebody else handed in before is never replaced.

A timestamp.txt is written only where the platform says when a hand-in came: Sakai in a file, in UTC, and
Brightspace in the folders' names, without a time zone; it is taken to be this machine's. The times of the files
in an archive are when the platform put it together or stored a file's content first. So nothing is late by the
hand-ins of the others; Canvas marks late hand-ins in their names, and they are named.
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
from datetime import UTC, datetime
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.grading.rebuild import MAX_BYTES
from mha_grader.instructor import roster, schemes
from mha_grader.instructor.roster import Origin, Scheme
from mha_grader.instructor.schemes import Found, guess

MAX_MEMBERS = 200_000  # files in an archive
MAX_NOTEBOOKS = 10  # of one student; together they may have `rebuild.MAX_BYTES`
MAX_TOTAL = 8 * 2**30  # bytes of all that is written
TIMESTAMP = "timestamp.txt"
MAX_TIMESTAMP = 1000  # bytes
# RuntimeError: encrypted; NotImplementedError: compressed in a way that Python does not know.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)
BY_NUMBER = ("canvas", "sakai")  # whose numbers (or login names) are a user's for good


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
    found: Found
    info: zipfile.ZipInfo


def collect(course: Course, assignment: str, archive: Path, scheme: Scheme | None = None) -> Collected:
    """Write the notebooks of an archive to submitted/<student>/<assignment>/.

    What a student handed in before is replaced, with its timestamp.txt, unless it is the same notebook. What
    somebody else handed in stays; a folder that no archive was the source of counts as one of the scheme `plain`.

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
    files = _files(assignment, members, scheme, result)
    # One folder with a platform's names in it may also be a student's, who chose these names.
    unsure = scheme is None and all(_plain_too(assignment, file) for file in files)
    known = roster.origins(course, assignment)
    there = _there(course, assignment) | known
    ids = _ids({file.found.origin for file in files}, known)
    of: defaultdict[str, list[_File]] = defaultdict(list)
    for file in files:
        of[ids[file.found.origin]].append(file)
    for student, theirs in of.items():
        who = {_identity(file.found.origin) for file in theirs}
        if len(who) > 1:
            result.refused[student] = (
                f"it is said to be of {len(who)} people: {', '.join(sorted(map(str, who)))}"
            )
        elif student in there and _identity(there[student]) not in who:
            result.refused[student] = f"in its place is what {_identity(there[student])} handed in"
        elif unsure and student in there:
            result.refused[student] = "these names can be read in two ways: say which with --scheme"
    of = defaultdict(
        list, {student: theirs for student, theirs in of.items() if student not in result.refused}
    )
    times = {student: _time(archive, theirs) for student, theirs in of.items()}
    chosen = {student: choose(assignment, _last_attempt(of[student])) for student in sorted(of)}
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
            place = course.submitted / student
            _write(place, assignment, archive, notebooks, times[student], student, result)
    who_handed_in = {student: of[student][0].found.origin for student in chosen}
    result.late = [student for student, origin in who_handed_in.items() if origin.late]
    roster.save(course, assignment, known | who_handed_in)
    return result


# --- whose a file is --------------------------------------------------------------------------------------


def _name(info: zipfile.ZipInfo) -> str:
    """A member's name. Not every program says that it writes UTF-8 when it does."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _files(
    assignment: str, members: list[zipfile.ZipInfo], scheme: Scheme | None, result: Collected
) -> list[_File]:
    """The files of students; the others are listed as left out.

    Raises:
        CourseError: if there is none.
    """
    names = [_name(info) for info in members]
    scheme = scheme or guess(names)
    depth = schemes.depth_of(scheme, names)
    paths = [name.split("/") for name in names]
    nobody = _only_folders(assignment, paths) if scheme == "plain" else set()
    files = []
    for name, path, info in zip(names, paths, members, strict=True):
        if scheme == "plain":
            found = None if path[0] in nobody else schemes.read_plain(assignment, path)
        else:
            found = schemes.read(scheme, depth, path)
            found = found if found and schemes.can_be_a_student(found.origin) else None
        if found is None:
            result.left_out.append(name)
        else:
            files.append(_File(found, info))
    if not files:
        raise CourseError(f"no file in the archive is named as a hand-in is named by the scheme {scheme!r}")
    return files


def _plain_too(assignment: str, file: _File) -> bool:
    """Whether a platform's name could also be the name of a file in a student's folder."""
    by_plain = schemes.read_plain(assignment, _name(file.info).split("/"))
    is_platforms = file.found.origin.scheme != "plain"
    return is_platforms and by_plain is not None and by_plain.file != file.found.file


def _only_folders(assignment: str, paths: Iterable[list[str]]) -> set[str]:
    """Folders that are no student's: there are folders in them, and no notebook where a student's would be."""
    deeper, students = set(), set()
    for path in paths:
        if schemes.read_plain(assignment, path) is None:
            deeper.add(path[0])
        elif path[-1].lower().endswith(".ipynb"):
            students.add(path[0])
    return deeper - students


def _there(course: Course, assignment: str) -> dict[str, Origin]:
    """Who handed in what is in submitted/, by id, as far as only the folders tell."""
    folders = course.submitted.glob(f"*/{assignment}") if course.submitted.is_dir() else ()
    return {folder.parent.name: Origin("plain", folder.parent.name) for folder in folders}


def _identity(origin: Origin) -> str:
    """One person on one platform, in words."""
    return " ".join(
        filter(None, (origin.name, origin.number and f"({origin.number})", f"by {origin.scheme}"))
    )


def _ids(found: Collection[Origin], known: Mapping[str, Origin]) -> dict[Origin, str]:
    """The id of each student in an archive: for Canvas the user's number, for Sakai the login name, else the name.

    Moodle's number belongs to one assignment, so it is no id; it is added to a name that several have, and to one
    that is another's id, since students can choose the name that Moodle shows. So is Brightspace's.
    """
    same = {_identity(origin): student for student, origin in known.items()}
    several = Counter(name for name, _ in {(origin.name, origin.number) for origin in found})
    ids: dict[Origin, str] = {}
    taken = set(known)
    for origin in sorted(found, key=lambda origin: (origin.name, origin.number)):
        student = origin.number if origin.scheme in BY_NUMBER else origin.name
        if _identity(origin) in same:
            student = same[_identity(origin)]
        elif origin.scheme not in (*BY_NUMBER, "plain"):
            if several[origin.name] > 1:
                student = f"{origin.name} ({origin.number})"
            while student in taken:
                student = f"{student} ({origin.number})"
        ids[origin] = same[_identity(origin)] = student
        taken.add(student)
    return ids


# --- what is taken ----------------------------------------------------------------------------------------


def _last_attempt(files: Iterable[_File]) -> list[_File]:
    """The files of a student's last attempt with a notebook; all if the platform does not tell attempts apart."""
    files = list(files)
    times = [
        file.found.time for file in files if file.found.time and file.found.file.lower().endswith(".ipynb")
    ]
    return [file for file in files if file.found.time == max(times)] if times else files


def _time(archive: zipfile.ZipFile, files: Iterable[_File]) -> datetime | None:
    """When a student handed in, if the platform says so."""
    for file in _last_attempt(files):
        if file.found.time:
            return file.found.time.astimezone()  # of this machine
        is_sakais = file.found.origin.scheme == "sakai" and file.info.file_size <= MAX_TIMESTAMP
        if is_sakais and _name(file.info).endswith(f")/{TIMESTAMP}"):
            with contextlib.suppress(*UNREADABLE):
                return schemes.sakai_time(archive.read(file.info).decode("ascii", "replace"))
    return None


def choose(assignment: str, files: Iterable[_File]) -> dict[str, zipfile.ZipInfo]:
    """The notebooks of a student that are written, by the name that they get.

    That is the one with the assignment's name; Canvas adds -1, -2, … to a name that a student hands in again,
    and the highest is the last. If there is none, it is all notebooks, and grading says what is wrong.
    """
    notebooks = [file for file in files if file.found.file.lower().endswith(".ipynb")]
    own = re.compile(rf"{re.escape(assignment)}(?:-(\d{{1,9}}))?\.ipynb")
    numbered = []
    for file in notebooks:
        match = own.fullmatch(file.found.file)
        if match and (match[1] is None or file.found.origin.scheme == "canvas"):
            numbered.append((int(match[1] or 0), file.info))
    if numbered:
        return {f"{assignment}.ipynb": max(numbered, key=lambda pair: pair[0])[1]}
    return {_safe(file.found.file): file.info for file in notebooks}


def _safe(name: str) -> str:
    """A file's name without what a file system or a shell could take for something else."""
    stem = re.sub(r"[^\w ()+-]", "_", name[: -len(".ipynb")])
    return f"{stem[:60]}.ipynb"


def _write(
    home: Path,
    assignment: str,
    archive: zipfile.ZipFile,
    notebooks: Mapping[str, zipfile.ZipInfo],
    time: datetime | None,
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
        except UNREADABLE as error:
            result.refused[student] = f"damaged or not readable: {error}"
            return
        if time is not None:
            (fresh / TIMESTAMP).write_text(f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n")
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
