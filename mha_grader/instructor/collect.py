"""Hand-ins out of the one zip file that a platform gives an instructor, into submitted/.

`nbgrader zip_collect` is not used for it. It unpacks everything, archives in archives too, without any limit
(one student's zip bomb fills the disk), stops for the whole class at one damaged archive or at two files of one
student, and finds the student anywhere in a path, so that a file's name can hand in for somebody else. Here
nothing is unpacked by the name that it has in the archive: a notebook is read, up to a limit, and written to
the place of the student whom the platform's own part of the name tells (see `schemes` and `whose`). What does not
fit is listed and not taken, and what somebody else handed in before is never replaced.

A timestamp.txt is written only where the platform says when a hand-in came (see `metadata`): Sakai and
Gradescope in UTC; Brightspace, Blackboard and Moodle's grading worksheet without a time zone, which is taken to be
this machine's. The times of the files in an archive are when the platform put it together or stored a file's
content first. So nothing is late by the hand-ins of the others; Canvas marks late hand-ins in their names, and they
are named.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from mha_grader.course.assignment import CourseError
from mha_grader.course.folders import Course
from mha_grader.grading.rebuild import MAX_BYTES
from mha_grader.instructor import metadata, origins, roster, roster_import, schemes, timestamps, whose
from mha_grader.instructor.origins import Origin, Scheme
from mha_grader.instructor.roster import Roster
from mha_grader.instructor.schemes import guess
from mha_grader.instructor.taken import (
    File,
    choose,
    last_attempt,
    members,
    name_of,
    notebooks_of,
    of_one_member,
    open_zip,
    read,
    unpacked,
)

MAX_NOTEBOOKS = 10  # of one student; together they may have `rebuild.MAX_BYTES`
MAX_TOTAL = 8 * 2**30  # bytes of all that is written
TIMESTAMP = timestamps.NAME
MAX_OWN = 100_000  # bytes of a small file of the platform's
WANTED = (
    "wanted is the zip file as Moodle, Canvas, Brightspace, Blackboard, Gradescope or Sakai gives it, or one of "
    "folders STUDENT/{0}.ipynb or STUDENT/{0}/{0}.ipynb, which may all lie in a folder submitted"
)


@dataclass
class Collected:
    """What became of an archive: students by what was done, and names of files that are nobody's."""

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    without_notebook: list[str] = field(default_factory=list)  # they get an empty folder, graded as missing
    several: list[str] = field(default_factory=list)  # notebooks, and none has the assignment's name
    refused: dict[str, str] = field(default_factory=dict)  # and why; what was there is still there
    unknown: dict[str, str] = field(default_factory=dict)  # to the roster: what they are called, and why
    late: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)  # whose hand-in counts for others, too, and for how many
    left_out: list[str] = field(default_factory=list)  # files that belong to no student


@dataclass(frozen=True)
class Extra:
    """What an instructor gives beside an archive."""

    scheme: Scheme | None = None  # how its files are named; it is guessed from the names if None
    worksheet: Path | None = None  # Moodle's grading worksheet of the assignment
    times: Path | None = None  # a table of students and times
    groups: bool = False  # one hand-in counts for all of a student's group


def collect(course: Course, assignment: str, archive: Path, extra: Extra = Extra()) -> Collected:
    """Write the notebooks of an archive to submitted/<student>/<assignment>/.

    What a student handed in before is replaced, with its timestamp.txt, unless it is the same notebook. What
    somebody else handed in stays; a folder that no archive was the source of counts as one of the scheme `plain`.

    Args:
        course: the course; with a roster.csv, only students who are in it hand in.
        assignment: the assignment's name.
        archive: the zip file.
        extra: what is given beside it.

    Raises:
        CourseError: if it is no zip file, holds no hand-in of that scheme, or is too large.
    """
    try:
        opened = open_zip(archive)
    except CourseError as error:
        raise CourseError(f"cannot read {archive} as a zip file: {error}") from None
    with opened:
        return _collect(course, assignment, opened, extra)


def _collect(course: Course, assignment: str, archive: zipfile.ZipFile, extra: Extra) -> Collected:
    result, known_people = Collected(), roster.load(course)
    if extra.groups and known_people is None:
        raise CourseError("--groups needs a roster.csv, which says who is in which group")
    files = _files(course, assignment, archive, extra.scheme, result, known_people)
    files = _told(archive, files, extra, result)
    scheme = files[0].found.origin.scheme
    # One folder with a platform's names in it may also be a student's, who chose these names.
    unsure = extra.scheme is None and all(_plain_too(assignment, file) for file in files)
    known = origins.origins(course, assignment)
    there = whose.there(course, assignment) | known
    found = {person for file in files for person in file.people}
    if known_people is None:
        ids = whose.by_platform(found, known)
    else:
        ids, result.unknown = whose.by_roster(found, known_people)
    of, members_of = _by_student(files, ids, known_people if extra.groups else None)
    places = {student.casefold(): student for student in sorted(there)}
    for student, theirs in of.items():
        if extra.groups:
            of[student] = theirs = of_one_member(theirs, ids)
        who, before = {file.people for file in theirs}, there.get(student)
        why = whose.conflict(student, who, before, places, ids, known_people)
        if why is None and before is not None and extra.scheme is None:
            why = _doubt(before, scheme, unsure)
        if why is not None:
            result.refused[student] = why
    of = {student: theirs for student, theirs in of.items() if student not in result.refused}
    times = _times(of, members_of, extra, known_people)
    chosen = _chosen(assignment, of, result)
    for student, notebooks in chosen.items():
        if student not in result.refused:
            _write(course.submitted / student, assignment, notebooks, times[student], student, result)
    who_handed_in = {
        student: dataclasses.replace(_origin(chosen[student], of[student]), members=members_of[student])
        for student in chosen
        if student not in result.refused  # what was there is still there, late or not
    }
    result.groups = [f"{s} ({len(of_group)})" for s in sorted(who_handed_in) if (of_group := members_of[s])]
    result.late = [student for student, origin in who_handed_in.items() if origin.late]
    origins.save(course, assignment, known | who_handed_in)
    return result


def _doubt(before: Origin, scheme: Scheme, unsure: bool) -> str | None:
    """Why nothing is replaced as long as nobody says which scheme the names follow; None if there is no doubt."""
    if unsure:
        return "these names can be read in two ways: say which with --scheme"
    if before.scheme != scheme:
        return (
            f"in its place is what {whose.identity(before)} handed in, and these names are read as those of "
            f"{scheme}: if they are, add --scheme {scheme}"
        )
    return None


def _origin(chosen: Mapping[str, File], files: Sequence[File]) -> Origin:
    """Who handed in, with the place in the archive of what is taken."""
    return next(iter(chosen.values()), last_attempt(files)[0]).people[0]


# --- whose a file is --------------------------------------------------------------------------------------


def _files(
    course: Course,
    assignment: str,
    archive: zipfile.ZipFile,
    scheme: Scheme | None,
    result: Collected,
    known_people: Roster | None,
) -> list[File]:
    """The files of students; the others are listed as left out.

    Raises:
        CourseError: if there is none, or if all lie in a student's folder.
    """
    infos = members(archive)
    names = [name_of(info) for info in infos]
    guessed = scheme is None
    scheme = scheme or guess(names)
    depth = schemes.depth_of(scheme, names)
    paths = [name.split("/") for name in names]
    if guessed and depth == 1 and (student := _student_around(course, known_people, paths)):
        raise CourseError(
            f"all files lie in one folder, {student!r}, and that is a student: add --scheme plain if it is the "
            f"student's, or --scheme {scheme} if it holds what {scheme} gave you"
        )
    paths = schemes.unwrapped(paths) if scheme == "plain" else paths
    nobody = _only_folders(assignment, paths) if scheme == "plain" else set()
    files = []
    for name, path, info in zip(names, paths, infos, strict=True):
        if scheme == "plain":
            found = None if path[0] in nobody else schemes.read_plain(assignment, path)
        else:
            found = schemes.read(scheme, depth, path)
            found = found if found and schemes.can_be_a_student(found.origin) else None
        if found is None:
            result.left_out.append(name)
        else:
            files.append(File(found, info, archive, (found.origin,)))
    wanted = WANTED.format(assignment)
    if not files:
        inside = [name for name in names if name.lower().endswith(".zip")]
        if inside and not any(name.lower().endswith(".ipynb") for name in names):
            raise CourseError(
                f"the archive holds another one, {inside[0]!r}: unpack it once, and collect that"
            )
        raise CourseError(
            f"no file in the archive is named as a hand-in is named by the scheme {scheme!r}: {wanted}"
        )
    if scheme == "plain" and guessed and known_people is None and _is_one_folder(assignment, files):
        raise CourseError(
            f"all notebooks lie in one folder, {files[0].found.origin.name!r}: if that is a student, add "
            f"--scheme plain; else {wanted}"
        )
    return files


def _student_around(course: Course, known_people: Roster | None, paths: Sequence[list[str]]) -> str | None:
    """The student who may have made the folder around all files, and chosen the names of those inside."""
    folder = next(path[0] for path in paths if path[0] not in schemes.OUTSIDE)
    if known_people is None:
        is_student = (
            schemes.can_be_a_student(Origin("plain", folder)) and (course.submitted / folder).is_dir()
        )
    else:
        is_student = not isinstance(known_people.find(Origin("plain", folder)), str)
    return folder if is_student else None


def _is_one_folder(assignment: str, files: Sequence[File]) -> bool:
    """Whether all lie in one folder that is hardly a student's, as none has the assignment's name."""
    names = {file.found.file for file in files}
    return len({file.found.origin for file in files}) == 1 and f"{assignment}.ipynb" not in names


def _plain_too(assignment: str, file: File) -> bool:
    """Whether a platform's name could also be the name of a file in a student's folder."""
    by_plain = schemes.read_plain(assignment, name_of(file.info).split("/"))
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


def _told(archive: zipfile.ZipFile, files: list[File], extra: Extra, result: Collected) -> list[File]:
    """The files with the people whom the platform names in a file of its own; others are listed as left out.

    Raises:
        CourseError: if a file that is needed for it is missing or cannot be read.
    """
    scheme = files[0].found.origin.scheme
    if scheme == "blackboard":
        told = _of_blackboard(files)
    elif scheme == "gradescope":
        told = _of_gradescope(archive, files)
        result.left_out = [name for name in result.left_out if not name.endswith(metadata.GRADESCOPES)]
    elif scheme == "moodle" and extra.worksheet is not None:
        told = _of_moodle(files, extra.worksheet)
    else:
        if extra.worksheet is not None:
            raise CourseError(
                f"the archive is not Moodle's (it is read as {scheme!r}), so no worksheet fits it"
            )
        return files
    result.left_out += [name_of(old.info) for old, new in zip(files, told, strict=True) if new is None]
    named = [file for file in told if file is not None]
    if not named:
        raise CourseError(
            "the platform's own files name nobody who handed in: download the archive again, whole"
        )
    return named


def _of_blackboard(files: list[File]) -> list[File | None]:
    users: dict[tuple[str, datetime | None], str] = {}
    for file in files:
        if not file.found.file and file.info.file_size <= MAX_OWN:
            with contextlib.suppress(CourseError):
                text = read(file).decode("utf-8-sig", "replace")
                before = file.found.origin.number
                users[before, file.found.time] = metadata.blackboards_user(text, before)
    return [
        _with(file, Origin("blackboard", "", user)) if (user := users.get(_attempt(file))) else None
        for file in files
    ]


def _attempt(file: File) -> tuple[str, datetime | None]:
    return file.found.origin.number, file.found.time


def _of_gradescope(archive: zipfile.ZipFile, files: list[File]) -> list[File | None]:
    depth = min(len(name_of(file.info).split("/")) for file in files)
    own = [
        info
        for info in members(archive)
        if PurePosixPath(name_of(info)).name == metadata.GRADESCOPES and name_of(info).count("/") < depth - 1
    ]
    if len(own) != 1 or own[0].file_size > metadata.MAX_GRADESCOPES:
        raise CourseError(f"Gradescope's archive needs its own {metadata.GRADESCOPES} beside the hand-ins")
    try:
        submissions = metadata.gradescope(read(dataclasses.replace(files[0], info=own[0])))
    except CourseError as error:
        raise CourseError(f"cannot read {metadata.GRADESCOPES}: {error}") from None
    told: list[File | None] = []
    for file in files:
        about = submissions.get(f"submission_{file.found.origin.number}")
        usable = about and all(schemes.can_be_a_student(person) for person in about.people)
        told.append(
            _with(file, *about.people, time=about.time) if about and about.people and usable else None
        )
    return told


def _of_moodle(files: list[File], worksheet: Path) -> list[File | None]:
    rows = roster_import.moodles_worksheet(worksheet)
    told: list[File | None] = []
    for file in files:
        row = rows.get(file.found.origin.number)
        if row is None:
            told.append(None)
            continue
        email, number = row.get("Email address", ""), row.get("ID number", "")
        person = dataclasses.replace(file.found.origin, email=email, id_number=number)
        time = metadata.parse_time(row.get("Last modified (submission)", ""))
        told.append(_with(file, person, time=time or file.found.time))
    return told


def _with(file: File, *people: Origin, time: datetime | None = None) -> File:
    """A file with the people who are said to have handed it in, and the time if it is told."""
    place = file.found.origin.place
    people = tuple(dataclasses.replace(person, place=place) for person in people)
    found = dataclasses.replace(file.found, origin=people[0], time=time or file.found.time)
    return dataclasses.replace(file, found=found, people=people)


def _by_student(
    files: Iterable[File], ids: Mapping[Origin, str], known_people: Roster | None
) -> tuple[dict[str, list[File]], dict[str, tuple[str, ...]]]:
    """The files by the student in whose folder they go, and the group that the hand-in counts for, if it is one.

    A group's hand-in lies in the folder of its first member. Nobody's is taken if one of a group is unknown.
    """
    of: defaultdict[str, list[File]] = defaultdict(list)
    groups: dict[str, tuple[str, ...]] = {}
    for file in files:
        if not all(person in ids for person in file.people):
            continue
        people = tuple(sorted(file.people, key=lambda person: ids[person]))
        file, students = dataclasses.replace(file, people=people), [ids[person] for person in people]
        if known_people is not None and len(students) == 1:
            students = [s.id for s in known_people.group_of(known_people.by_id[students[0]])]
        of[students[0]].append(file)
        groups[students[0]] = tuple(students) if len(students) > 1 else ()
    return dict(of), groups


# --- what is taken ----------------------------------------------------------------------------------------


def _times(
    of: Mapping[str, list[File]],
    members_of: Mapping[str, tuple[str, ...]],
    extra: Extra,
    known_people: Roster | None,
) -> dict[str, datetime | None]:
    """When each student handed in, as far as anything says so; a table that is given counts first.

    A time that it gives for one of a group is the group's.

    Raises:
        CourseError: if the table names somebody whom the roster does not know.
    """
    given = metadata.times_table(extra.times) if extra.times is not None else {}
    if known_people is not None:
        given = {known_people.named(student).id: time for student, time in given.items()}
    told = {s: [given[each] for each in (s, *members_of[s]) if each in given] for s in of}
    return {student: next(iter(told[student]), None) or _time(theirs) for student, theirs in of.items()}


def _time(files: Iterable[File]) -> datetime | None:
    """When a student handed in, if the platform says so."""
    for file in last_attempt(files):
        if file.found.time:
            return file.found.time.astimezone()  # of this machine, if it has no zone
        origin = file.found.origin  # a student's own file of that name lies deeper
        is_sakais = origin.scheme == "sakai" and name_of(file.info) == f"{origin.place}{TIMESTAMP}"
        if is_sakais and file.info.file_size <= MAX_OWN:
            with contextlib.suppress(CourseError):
                return metadata.sakai_time(read(file).decode("ascii", "replace"))
    return None


def _chosen(assignment: str, of: Mapping[str, list[File]], result: Collected) -> dict[str, dict[str, File]]:
    """The notebooks of each student; those who have too much are refused.

    Raises:
        CourseError: if all together are too much.
    """
    chosen = {}
    for student in sorted(of):
        files = last_attempt(of[student])
        packed = [file for file in files if file.found.file.lower().endswith(".zip")]
        if not notebooks_of(files) and packed:
            try:
                files = unpacked(packed)
            except CourseError as error:
                result.refused[student] = f"its zip file cannot be taken: {error}"
                continue
        notebooks = choose(assignment, files)
        if len(notebooks) > MAX_NOTEBOOKS:
            result.refused[student] = f"{len(notebooks)} notebooks, and none is {assignment}.ipynb"
        elif sum(file.info.file_size for file in notebooks.values()) > MAX_BYTES:
            result.refused[student] = f"more than {MAX_BYTES // 2**20} MB"
        elif len(notebooks) > 1:
            result.several.append(student)
        chosen[student] = notebooks
    total = sum(
        file.info.file_size for student in chosen.keys() - result.refused for file in chosen[student].values()
    )
    if total > MAX_TOTAL:
        raise CourseError(
            f"the notebooks have {total} bytes, and {MAX_TOTAL} are allowed: nothing was written"
        )
    return chosen


def _write(
    home: Path,
    assignment: str,
    notebooks: Mapping[str, File],
    time: datetime | None,
    student: str,
    result: Collected,
) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        result.refused[student] = f"{home} is no folder"
        return
    folder = home / assignment
    with tempfile.TemporaryDirectory(dir=home, prefix=".collecting-") as temporary:
        fresh = Path(temporary) / assignment
        fresh.mkdir()
        try:
            for name, file in notebooks.items():
                (fresh / name).write_bytes(read(file))
        except CourseError as error:
            result.refused[student] = str(error)
            return
        if time is not None:
            (fresh / TIMESTAMP).write_text(f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n")
        if not notebooks:
            result.without_notebook.append(student)
        if not folder.exists() and not folder.is_symlink():
            result.new.append(student)
        elif dict(_contents(folder)) == dict(_contents(fresh)) and (
            time is None or timestamps.timestamp(folder) == timestamps.timestamp(fresh)
        ):
            result.unchanged.append(student)
            return
        else:
            result.replaced.append(student)
            folder.rename(Path(temporary) / "before")
        fresh.rename(folder)


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.glob("*.ipynb"):
        yield path.name, b"" if path.is_symlink() or not path.is_file() else path.read_bytes()
