"""How a platform names the files of an archive, and so: whose a file is.

A platform puts its own words before the name of a student's file, as folders or as the start of the file's name.
They are read at one place of all paths, where nearly all of an archive's names have them; what stands behind them
is the student's, who may have chosen a name that looks like the platform's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from mha_grader.course.assignment import CourseError
from mha_grader.instructor.origins import Origin, Scheme
from mha_grader.instructor.roster import is_student_id

NEARLY_ALL = 0.9
HANDED_IN = (".ipynb", ".zip")
LONGEST = 100  # bytes of a student's id

# Moodle: Full Name_1234567_assignsubmission_file_/…, with the number that Moodle gives a participant of the
# assignment. Canvas: lastnamefirstname_LATE_12345_678901_…, with the numbers of the user and of the file, or
# without a name LATE_anon_aB3xY_678901_…. Brightspace: 12345-678 - Full Name - Nov 1, 2026 1133 PM/…, with the
# numbers of the user and of the assignment's folder. Blackboard: Assignment_login_attempt_2026-11-01-23-33-00_…,
# and the same with .txt for a file of its own. Gradescope: submission_12345/…, whose students its
# submission_metadata.yml names. Sakai: Last, First(user)/Submission attachment(s)/….
PLATFORM: dict[Scheme, re.Pattern[str]] = {
    "moodle": re.compile(
        r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)", re.DOTALL | re.ASCII
    ),
    "canvas": re.compile(
        r"(?:(?P<late_anonymous>LATE_)?(?P<anonymous>anon_[A-Za-z0-9]+)|"
        # a name has no words of another platform, which would leave the numbers to the student
        r"(?P<name>(?:(?!_attempt_\d{4}(?:-\d\d){5}| - ).)+?)(?P<late>_LATE)?_(?P<number>\d+))"
        r"_(?:\d+_(?P<file>.+)|text\.html|link\.html)",
        re.DOTALL | re.ASCII,
    ),
    "brightspace": re.compile(
        r"(?P<number>\d+)-\d+ - (?P<name>.+?) - "
        r"(?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{3,4} [AP]M)(?: - (?P<file>.+))?",
        re.DOTALL | re.ASCII,
    ),
    "blackboard": re.compile(
        r"(?P<number>.+?)_attempt_(?P<time>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)", re.DOTALL | re.ASCII
    ),
    "gradescope": re.compile(r"submission_(?P<number>\d+)", re.ASCII),
    "sakai": re.compile(r"(?P<name>.+)\((?P<number>[^()]+)\)", re.DOTALL),
}
TIMES = {"brightspace": "%b %d, %Y %I%M %p", "blackboard": "%Y-%m-%d-%H-%M-%S"}
BRIGHTSPACES_FOLDER = re.compile(
    r"(?P<number>\d+)-\d+ - (?P<name>.+) - (?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{3,4} [AP]M)",
    re.DOTALL | re.ASCII,
)
ATTACHED = "Submission attachment(s)"  # Sakai's folder of what the student handed in
SUBMITTED = "submitted"  # nbgrader's folder of all hand-ins
OUTSIDE = ("__MACOSX",)  # what a Mac adds when it packs


@dataclass(frozen=True)
class Found:
    """Whose a file is, and what the student called it."""

    origin: Origin
    file: str  # "" if it is the platform's own
    time: datetime | None = None  # when it was handed in, if its name says so


def guess(names: Iterable[str]) -> Scheme:
    """The platform's scheme that the names of nearly all hand-ins follow; `plain` if there is none.

    Of several schemes it is the one that most names follow. The platform that made the archive has put its words
    before every name, also before one that a student chose to look like another platform's. The words are those of
    the outermost folder, or of the one inside if all lie in one; what lies in a folder counts once.

    Raises:
        CourseError: if most hand-ins follow one, and too many do not.
    """
    paths = _paths(names)
    for depth in (0, 1) if len({path[0] for path in paths}) == 1 else (0,):
        pieces = {path[depth] for path in paths if len(path) > depth}
        folders = {path[depth] for path in paths if len(path) > depth + 1}
        # beside hand-ins lie files of the platform's own
        handed_in = folders | {piece for piece in pieces if piece.lower().endswith(HANDED_IN)} or pieces
        fits = {
            scheme: {path[depth] for path in paths if read(scheme, depth, path) is not None}
            for scheme in PLATFORM
        }
        counts = {scheme: len(fit & handed_in) for scheme, fit in fits.items()}
        likely = [scheme for scheme in PLATFORM if counts[scheme] >= max(1, NEARLY_ALL * len(handed_in))]
        if likely:
            return max(likely, key=lambda scheme: len(fits[scheme]))
        most = max(counts, key=lambda scheme: counts[scheme])
        if 2 * counts[most] > len(handed_in):
            raise CourseError(
                f"{counts[most]} of {len(handed_in)} hand-ins are named by the scheme {most!r}, and the others "
                f"are not: if the archive is of that platform, add --scheme {most}, and they are left out"
            )
    return "plain"


def _paths(names: Iterable[str]) -> list[list[str]]:
    return [path for path in (name.split("/") for name in names) if path[0] not in OUTSIDE]


def depth_of(scheme: Scheme, names: Iterable[str]) -> int:
    """In which folder of a path the words of a scheme stand: in the outermost or in the one inside, for all names.

    Raises:
        CourseError: if no name has them.
    """
    if scheme == "plain":
        return 0
    fits = [sum(read(scheme, depth, path) is not None for path in _paths(names)) for depth in (0, 1)]
    if not any(fits):
        raise CourseError(f"no file in the archive is named as a hand-in is named by the scheme {scheme!r}")
    return fits.index(max(fits))


def read(scheme: Scheme, depth: int, path: Sequence[str]) -> Found | None:
    """Whose a file is whose platform's words stand at one place of its path; None if they do not."""
    odd = any(piece in ("", ".", "..") or "\\" in piece or "\0" in piece for piece in path)
    if odd or path[0] in OUTSIDE or len(path) <= depth:
        return None
    is_file = depth == len(path) - 1
    pattern = BRIGHTSPACES_FOLDER if scheme == "brightspace" and not is_file else PLATFORM[scheme]
    match = pattern.fullmatch(path[depth])
    if match is None:
        return None
    found = match.groupdict(default="")
    file = found.get("file", "")
    if scheme == "sakai":
        inside = path[depth + 1 :]
        if not inside:
            return None
        file = inside[1] if len(inside) == 2 and inside[0] == ATTACHED else ""
    elif scheme in ("canvas", "blackboard"):
        if not is_file:
            return None
    elif is_file != bool(file):
        return None
    elif not is_file:
        file = path[-1]
    late = bool(found.get("late") or found.get("late_anonymous"))
    try:
        time = datetime.strptime(found["time"], TIMES[scheme]) if found.get("time") else None
    except ValueError:
        time = None
    number = found["number"] or found.get("anonymous", "")
    words = path[depth].removesuffix(file) if is_file and file else "" if is_file else f"{path[depth]}/"
    if scheme == "sakai":  # its importer wants the folder around it as well
        words = "/".join((*path[:depth], words))
    origin = Origin(scheme, found.get("name", "").strip(), number, late, place=words)
    return Found(origin, file, time)


def can_be_a_student(origin: Origin) -> bool:
    """Whether what a platform calls somebody can be a student's id."""
    known = [text for text in (origin.name, origin.number) if text]
    return bool(known) and all(is_student_id(text) and len(text.encode()) <= LONGEST for text in known)


def unwrapped(path: Sequence[str]) -> Sequence[str]:
    """A path of a plain archive without the folder submitted around it."""
    return path[1:] if path[0] == SUBMITTED and len(path) > 2 else path


def read_plain(assignment: str, path: Sequence[str]) -> Found | None:
    """Whose a file is in an archive of folders `student/` or `student/assignment/`; None if it is in neither.

    The folders may all lie in one that is called submitted, as when that folder was packed as it is.
    """
    path = unwrapped(path)
    odd = any(piece in ("", ".", "..") or "\\" in piece or "\0" in piece for piece in path)
    if odd or path[0] in OUTSIDE or len(path) < 2 or path[1:-1] not in ([], [assignment]):
        return None
    found = Found(Origin("plain", path[0]), path[-1])
    if path[0] in (assignment, SUBMITTED):  # a folder of the archive
        return None
    return found if can_be_a_student(found.origin) else None
