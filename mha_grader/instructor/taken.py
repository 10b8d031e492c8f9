"""Which of the files that a student handed in are taken: of one attempt, one notebook, also out of a zip file."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mha_grader.course.assignment import CourseError
from mha_grader.grading.rebuild import MAX_BYTES
from mha_grader.instructor import schemes
from mha_grader.instructor.origins import Origin
from mha_grader.instructor.schemes import Found

MAX_MEMBERS = 200_000  # files in an archive
# What zip files hold; Python unpacks the other kinds, which nobody needs, without a limit.
KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class File:
    """A file of an archive that somebody handed in."""

    found: Found
    info: zipfile.ZipInfo
    archive: zipfile.ZipFile
    people: tuple[Origin, ...]  # all who handed it in
    packed: zipfile.ZipInfo | None = None  # the zip file in the archive that it lies in, if it lies in one


def read(file: File) -> bytes:
    """A file's content.

    Raises:
        CourseError: if it is damaged, packed in an unusual way, or too large.
    """
    if file.packed is None:
        return _read(file.archive, file.info)
    with open_zip(io.BytesIO(_read(file.archive, file.packed))) as packed:
        return _read(packed, file.info)


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in KINDS:
        raise CourseError("it is compressed in an unusual way")
    try:
        with archive.open(info) as source:
            data = source.read(MAX_BYTES + 1)
    except Exception as error:  # what zipfile meets in damaged data, it raises as it is
        raise CourseError(f"damaged or not readable: {error}") from None
    if len(data) > MAX_BYTES:
        raise CourseError(f"more than {MAX_BYTES // 2**20} MB")
    return data


def open_zip(source: Path | io.BytesIO) -> zipfile.ZipFile:
    """A zip file.

    Raises:
        CourseError: if it is none, damaged, or has too many files.
    """
    try:
        opened = zipfile.ZipFile(source)
    except Exception as error:  # as in `_read`
        raise CourseError(f"it is damaged or none: {error}") from None
    if len(opened.infolist()) > MAX_MEMBERS:
        raise CourseError(f"it holds {len(opened.infolist())} files, and {MAX_MEMBERS} are allowed")
    return opened


def members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files in an archive, without folders."""
    return [info for info in archive.infolist() if info.filename and not info.is_dir()]


def name_of(info: zipfile.ZipInfo) -> str:
    """A member's name. Not every program says that it writes UTF-8 when it does."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def last_attempt(files: Iterable[File]) -> list[File]:
    """The files of a student's last attempt with a notebook; all if the platform does not tell attempts apart."""
    files = list(files)
    handed_in = notebooks_of(files) or [file for file in files if file.found.file.lower().endswith(".zip")]
    times = [file.found.time for file in handed_in if file.found.time]
    return [file for file in files if file.found.time == max(times)] if times else files


def of_one_member(files: list[File], ids: Mapping[Origin, str]) -> list[File]:
    """Of what several members of a group handed in: the last, if it is not the same.

    All if no times are told, or if two people are said to be one student.
    """
    of: defaultdict[tuple[Origin, ...], list[File]] = defaultdict(list)
    for file in files:
        of[file.people].append(file)
    people = {person for together in of for person in together}
    if len({ids[person] for person in people}) < len(people):
        return files
    notebooks = {people: notebooks_of(theirs) for people, theirs in of.items()}
    who = [people for people, theirs in notebooks.items() if theirs]
    if not who:
        return next(iter(of.values()))
    contents = {
        frozenset((file.info.CRC, file.info.file_size) for file in notebooks[people]) for people in who
    }
    if len(contents) == 1:
        return of[who[0]]
    times = {people: file.found.time for people in who for file in last_attempt(notebooks[people])}
    told = {people: time for people, time in times.items() if time is not None}
    return of[max(told, key=lambda people: told[people])] if len(told) == len(who) else files


def notebooks_of(files: Iterable[File]) -> list[File]:
    """The notebooks among the files."""
    return [file for file in files if file.found.file.lower().endswith(".ipynb")]


def unpacked(packed: Sequence[File]) -> list[File]:
    """The notebooks in the zip file that a student handed in. A zip file in that one is not opened.

    Raises:
        CourseError: if there are several zip files, or it cannot be read.
    """
    if len(packed) > 1:
        raise CourseError("there are several, and no notebook")
    (file,) = packed
    with open_zip(io.BytesIO(read(file))) as inside:
        found = [(info, name_of(info).split("/")) for info in members(inside)]
    return [
        dataclasses.replace(
            file, found=dataclasses.replace(file.found, file=path[-1]), info=info, packed=file.info
        )
        for info, path in found
        if path[0] not in schemes.OUTSIDE and not path[-1].startswith("._")
    ]


def choose(assignment: str, files: Iterable[File]) -> dict[str, File]:
    """The notebooks of a student that are written, by the name that they get.

    That is the one with the assignment's name; Canvas adds -1, -2, … to a name that a student hands in again,
    and the highest is the last. If there is none, it is the only copy by Jupyter's or a browser's name
    (`-Copy1`, ` (1)`); else all notebooks, and grading says what is wrong.
    """
    notebooks = notebooks_of(files)
    own = re.compile(rf"{re.escape(assignment)}(?:-(\d{{1,9}}))?\.ipynb")
    copy = re.compile(rf"{re.escape(assignment)}(?:-Copy\d{{1,9}}| ?\(\d{{1,9}}\))+\.ipynb")
    numbered = []
    for file in notebooks:
        match = own.fullmatch(file.found.file)
        if match and (match[1] is None or file.found.origin.scheme == "canvas"):
            numbered.append((int(match[1] or 0), file))
    if numbered:
        return {f"{assignment}.ipynb": max(numbered, key=lambda pair: pair[0])[1]}
    copies = [file for file in notebooks if copy.fullmatch(file.found.file)]
    named: dict[str, File] = {}
    for file in copies if len(copies) == 1 else notebooks:
        name = _safe(file.found.file)
        if name.casefold() in {other.casefold() for other in named}:  # some machines would take them for one
            name = f"{len(named)}_{name}"
        named[name] = file
    return named


def _safe(name: str) -> str:
    """A file's name without what a file system or a shell could take for something else."""
    stem = re.sub(r"[^\w ()+-]", "_", name[: -len(".ipynb")])
    return f"{stem[:60]}.ipynb"
