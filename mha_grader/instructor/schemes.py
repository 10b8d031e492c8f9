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
LONGEST = 180  # bytes of a student's id: a number may be added to it, and a suffix to a file of that name

# Moodle: Full Name_1234567_assignsubmission_file_/…, with the number that Moodle gives a participant of the
# assignment. Brightspace: 12345-678 - Full Name - Nov 1, 2026 1133 PM/…, with the numbers of the user and of the
# assignment's folder. Blackboard: Assignment_login_attempt_2026-11-01-23-33-00_…, and the same with .txt for a file
# of its own. Gradescope: submission_12345/…, whose students its submission_metadata.yml names. Sakai: Last,
# First(user)/Submission attachment(s)/…. Canvas: lastnamefirstname_LATE_12345_678901_…, with the numbers of the
# user and of the file, or without a name LATE_anon_aB3xY_678901_….
DAY = r"(?P<time>[A-Z][a-z]{2} \d{1,2}, 20\d\d \d{3,4} [AP]M)"
PLATFORM: dict[Scheme, re.Pattern[str]] = {
    "moodle": re.compile(
        r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)", re.DOTALL | re.ASCII
    ),
    "brightspace": re.compile(
        rf"(?P<number>\d+)-\d+ - (?P<name>.+?) - {DAY}(?: - (?P<file>.+))?", re.DOTALL | re.ASCII
    ),
    "blackboard": re.compile(
        r"(?P<number>.+?)_attempt_(?P<time>20\d\d(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)", re.DOTALL | re.ASCII
    ),
    "gradescope": re.compile(r"submission_(?P<number>\d+)", re.ASCII),
    "sakai": re.compile(r"(?P<name>.+)\((?P<number>[^()]+)\)", re.DOTALL),
    "canvas": re.compile(
        r"(?:(?P<late_anonymous>LATE_)?(?P<anonymous>anon_(?!LATE_)[A-Za-z0-9]+)|"
        r"(?P<name>.+?)(?P<late>_LATE)?_(?P<number>\d+))_(?:\d+_(?P<file>.+)|text\.html|link\.html)",
        re.DOTALL | re.ASCII,
    ),
}
# Names on Canvas may have numbers in them, and names of files as well: which two are Canvas' own?
CANVAS_NUMBERS = re.compile(r"_(?=\d+_(?:\d+_.|(?:text|link)\.html$))", re.ASCII)
DAYS = re.compile(f" - (?={DAY})", re.ASCII)
TIMES = {"brightspace": "%b %d, %Y %I%M %p", "blackboard": "%Y-%m-%d-%H-%M-%S"}
BRIGHTSPACES_FOLDER = re.compile(rf"(?P<number>\d+)-\d+ - (?P<name>.+) - {DAY}", re.DOTALL | re.ASCII)
ATTACHED = "Submission attachment(s)"  # Sakai's folder of what the student handed in
SAKAIS = (ATTACHED, "Feedback Attachment(s)", "timestamp.txt", "comments.txt", "feedbackText.html")
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
        CourseError: if two are as likely, or if most hand-ins follow one and too many do not.
    """
    paths = _paths(names)
    for depth in (0, 1) if len({path[0] for path in paths}) == 1 else (0,):
        pieces = {path[depth] for path in paths if len(path) > depth}
        folders = {path[depth] for path in paths if len(path) > depth + 1}
        # beside hand-ins lie files of the platform's own
        handed_in = folders | {piece for piece in pieces if piece.lower().endswith(HANDED_IN)} or pieces
        fits = {scheme: {path[depth] for path in paths if _match(scheme, depth, path)} for scheme in PLATFORM}
        counts = {scheme: len(fit & handed_in) for scheme, fit in fits.items()}
        likely = [scheme for scheme in PLATFORM if counts[scheme] >= max(1, NEARLY_ALL * len(handed_in))]
        likely = [scheme for scheme in likely if len(fits[scheme]) == max(len(fits[each]) for each in likely)]
        if len(likely) > 1:
            options = " or ".join(f"--scheme {scheme}" for scheme in likely)
            raise CourseError(f"these names can be those of {' and of '.join(likely)}: add {options}")
        if likely:
            return likely[0]
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
    """Whose a file is whose platform's words stand at one place of its path.

    None if they do not, or if it is not sure where they end and the student's begin.
    """
    match = _match(scheme, depth, path)
    if match is None or is_odd(path):
        return None
    is_file, piece = depth == len(path) - 1, path[depth]
    if scheme == "canvas" and len(CANVAS_NUMBERS.findall(piece)) > 1:
        return None
    found = match.groupdict(default="")
    file = found.get("file", "") if is_file else path[-1]
    if scheme == "sakai":
        inside = path[depth + 1 :]
        file = inside[1] if len(inside) == 2 and inside[0] == ATTACHED else ""
    # On Brightspace a name may hold a time as well, be it a student's or a file's: the last one counts.
    times = [day[1] for day in DAYS.finditer(piece)] if scheme == "brightspace" else [found.get("time", "")]
    words = piece.removesuffix(file) if is_file and file else "" if is_file else f"{piece}/"
    if scheme == "sakai":  # its importer wants the folder around it as well
        words = "/".join((*path[:depth], words))
    late = bool(found.get("late") or found.get("late_anonymous"))
    number = found["number"] or found.get("anonymous", "")
    origin = Origin(scheme, found.get("name", "").strip(), number, late, place=words)
    return Found(origin, file, max(filter(None, (_time(scheme, text) for text in times)), default=None))


def _match(scheme: Scheme, depth: int, path: Sequence[str]) -> re.Match[str] | None:
    """The platform's words at one place of a path, if they stand there and the platform writes such paths."""
    is_file = depth == len(path) - 1
    pattern = BRIGHTSPACES_FOLDER if scheme == "brightspace" and not is_file else PLATFORM[scheme]
    match = pattern.fullmatch(path[depth]) if depth < len(path) else None
    if match is None:
        return None
    if scheme == "sakai":
        fits = not is_file and path[depth + 1] in SAKAIS
    elif scheme in ("canvas", "blackboard"):
        fits = is_file
    else:
        fits = is_file == bool(match.groupdict().get("file"))
    return match if fits else None


def _time(scheme: Scheme, text: str) -> datetime | None:
    try:
        return datetime.strptime(text, TIMES[scheme]) if text else None
    except ValueError:
        return None


def is_odd(path: Sequence[str]) -> bool:
    """Whether a path has pieces that no platform writes, or is what a Mac adds."""
    return path[0] in OUTSIDE or any(
        piece in ("", ".", "..") or "\\" in piece or "\0" in piece for piece in path
    )


def can_be_a_student(origin: Origin) -> bool:
    """Whether what a platform calls somebody can be a student's id."""
    known = [text for text in (origin.name, origin.number) if text]
    return bool(known) and all(is_student_id(text) and len(text.encode()) <= LONGEST for text in known)


def unwrapped(paths: Sequence[list[str]]) -> list[list[str]]:
    """The paths of a plain archive, without the folder submitted if all lie in it."""
    theirs = [path for path in paths if path[0] not in OUTSIDE]
    wrapped = theirs and all(path[0] == SUBMITTED and len(path) > 2 for path in theirs)
    return [path[1:] if wrapped and path[0] == SUBMITTED else path for path in paths]


def read_plain(assignment: str, path: Sequence[str]) -> Found | None:
    """Whose a file is in an archive of folders `student/` or `student/assignment/`; None if it is in neither."""
    if is_odd(path) or len(path) < 2 or path[1:-1] not in ([], [assignment]):
        return None
    found = Found(Origin("plain", path[0]), path[-1])
    if path[0] in (assignment, SUBMITTED):  # a folder of the archive
        return None
    return found if can_be_a_student(found.origin) else None
