"""Hands the same hand-ins to `nbgrader autograde` as it comes and to `mha-grade grade`, and writes what each gave.

`make plain-nbgrader` writes the page `book/plain_nbgrader.md`. For nbgrader the hidden tests are written the way
it wants them: code in the student's kernel that ends with the number of points. nbgrader, its kernels and so the
hand-ins run in a sandbox without a network, with a copy of a course as the only folder that they can write to.
"""

import contextlib
import inspect
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from examples import handins
from examples.grade import make_course
from mha_grader import cli, testing
from mha_grader.course import store
from mha_grader.course.assignment import HIDDEN_BEGIN, HIDDEN_END, Assignment, load_assignment
from mha_grader.grading import rebuild
from mha_grader.grading.grade import unusable_record
from tests.mha_grader import small_course
from tests.mha_grader.grading import test_malformed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book" / "plain_nbgrader.md"
EXAMPLES = "single_head"
LAST = "s26"  # it changes the scores of all others
SECONDS = 150  # for one hand-in: nbgrader gives a cell 30
MALFORMED = (  # each stands for others that fare alike
    "empty", "cut in half", "a web page", "cells as a dict", "an empty list of cells",
    "UTF-8 with a byte order mark", "UTF-16", "latin-1", "Windows lines in the cells", "format 3", "format 4.0",
    "format 4.4", "format 4.5",
    "nothing but cells", "ids all missing", "ids all the same", "grade_id missing", "grade_id renamed",
    "grade_ids exchanged", "grade_id twice, first try below", "checks deleted", "a solution deleted", "upside down",
    "solution in a cell of its own at the end", "solution in its check", "solution became a text",
    "check became a text", "all metadata lost", "as Colab writes it", "as VS Code writes it", "another kernel",
    "source a number", "syntax error", "tabs among blanks", "asks for input", "%%time", "!pip", "exit",
    "prints a hundred megabytes", "renamed by a browser", "two versions", "in a folder of the folder",
    "an empty folder", "a link to a neighbour's notebook", "a link to a neighbour's folder",
)  # fmt: skip

# --- the tests as nbgrader wants them ---------------------------------------------------------------------

CONFIG = 'c = get_config()\nc.CourseDirectory.source_directory = "solutions"\n'
PRELUDE = '''\
import copy, math, types
import numpy as np
import numpy.testing
from collections.abc import Mapping
from typing import Any

Mismatch, describe, show = AssertionError, repr, repr

def _scalar(value):
    return value.item() if isinstance(value, np.ndarray | np.generic) and np.ndim(value) == 0 else value

class Watched:
    """A function that remembers which of its arguments it changed."""
    def __init__(self, function):
        self.function, self.changed = function, ()
    def __call__(self, *args, **kwargs):
        before = copy.deepcopy(args)
        result = self.function(*args, **kwargs)
        self.changed = [i for i, arg in enumerate(args) if not np.array_equal(arg, before[i])]
        return result

def expect(condition, message=""):
    assert condition, message

def expect_close(got, expected, tolerance=1e-5, what=""):
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)

def expect_equal(got, expected, what=""):
    np.testing.assert_array_equal(got, expected, strict=True)

def expect_unchanged(function, what=""):
    assert not function.changed

def part(points, needs=(), example=None):
    def run(test):
        global earned
        try:
            assert set([needs] if isinstance(needs, str) else needs) <= passed
            test(np.random.default_rng(0))
        except Exception:
            return
        passed.add(test.__name__)
        earned += points
    return run

def part_for_each(check, points, proves):
    for question in proves:
        def test(rng):
            check(question)
        test.__name__ = question
        part(points)(test)

{helpers}

reference = {{}}
exec({reference!r}, reference)
reference = types.SimpleNamespace(**reference)
earned, passed = 0, set()
if callable({item}):
    {item} = Watched({item})
elif isinstance({item}, dict):  # NumPy's numbers are numbers
    {item} = {{k: v.item() if isinstance(v, np.generic) else v for k, v in {item}.items()}}
'''


HELPERS = (  # of hidden tests, taken over as they are
    testing.expect_answer, testing.number_of, testing.mask_of, testing.expect_boolean, testing.output_of,
    testing.pair_of, testing.random_mask, testing.scalar_qkv, testing.wide_qkv, testing.low_qkv, testing.high_qkv,
    testing.decided_qkv, testing.undecided_qkv,
)  # fmt: skip


def in_the_kernel(assignment: Assignment, item: str) -> str:
    """The hidden test of an item as a cell that runs behind the student's code and shows the points."""
    trusted = [cell.source for cell in assignment.cells if cell.kind in ("given", "solution")]
    reference = re.sub("### (BEGIN|END) SOLUTION", "#", "\n".join(trusted))
    helpers = "\n".join(map(inspect.getsource, HELPERS))
    prelude = PRELUDE.format(reference=reference, item=item, helpers=helpers)
    hidden = assignment.cell("test", item).hidden.strip("\n")
    return f"{HIDDEN_BEGIN}\n{prelude}\n{hidden}\n\nearned\n{HIDDEN_END}"


def make_plain(folder: Path, assignment: Assignment, solutions: Path) -> None:
    """Make a course that is graded by nbgrader alone, from the instructor's notebook."""
    shutil.copytree(solutions, folder / "solutions" / assignment.name)
    (folder / "nbgrader_config.py").write_text(CONFIG)
    path = folder / "solutions" / assignment.name / f"{assignment.name}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = in_the_kernel(assignment, cell["id"].removeprefix("test_"))
    path.write_text(json.dumps(notebook), "utf-8")


# --- inside the sandbox -----------------------------------------------------------------------------------


def sandboxed(course: Path, name: str, students: list[str]) -> dict[str, dict]:
    """Let nbgrader grade the students of a course, one by one; for each the score (or None) and a remark."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader calls alembic
    command = [
        "bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--die-with-parent",
        "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        "--size", str(2**28), "--tmpfs", "/tmp", "--bind", str(course), "/tmp/course", "--chdir", "/tmp/course",
        "--ro-bind", str(ROOT), "/tmp/project", "--ro-bind", sys.prefix, sys.prefix,
        "--clearenv", "--setenv", "PATH", path,
        "--setenv", "HOME", "/tmp", "--setenv", "PYTHONPATH", "/tmp/project",
        sys.executable, "-m", "tests.mha_grader.plain_nbgrader", name, *students,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def inside(name: str, students: list[str]) -> None:
    """Grade with nbgrader and print what came as one line of JSON."""
    from nbgrader.apps.api import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import PyFileConfigLoader

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**29, 2**29))
    config = PyFileConfigLoader("nbgrader_config.py").load_config()
    api = NbGraderAPI(CourseDirectory(config=config, root=os.getcwd()), config=config)
    released = api.generate_assignment(name)
    assert released["success"], released
    found, before = {}, {}
    for student in students:
        log = in_time(lambda student=student: api.autograde(name, student, create=True, force=True))
        now = gradebook_scores(name)
        changed = sum(now[other] != score for other, score in before.items() if other != student)
        remark = f"the scores of {changed} others change" if changed else why(log) if log else ""
        found[student] = {"score": None if log else now.get(student), "remark": remark}
        before = now
    print(json.dumps(found))


def in_time(grade) -> str:
    """Run it in a process of its own; the log of what went wrong, empty if nothing did."""
    results, results_in = multiprocessing.Pipe(duplex=False)

    def run():
        os.setsid()
        for descriptor in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        done = grade()
        results_in.send("" if done["success"] else done["log"] or done.get("error") or "failed")

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    results_in.close()
    try:
        log = results.recv() if results.poll(SECONDS) else "does not come to an end"
    except EOFError:
        log = "ends nbgrader itself"
    process.join(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return log


def why(log: str) -> str:
    """A log in a few words: the last error that it names."""
    if "use an old version" in log:  # it takes a copied cell for one
        return "no score: the run stops, later students are not graded"
    errors = re.findall(r"^\s*(?:\w+\.)*(\w*(?:Error|Exception))\b", log, re.M)
    errors = [error for error in errors if error != "NbGraderException"]
    if errors:
        return f"no score: {errors[-1]}"
    for words in (
        "No notebooks were matched",
        "No notebooks found",
        "ends nbgrader itself",
        "does not come to an end",
    ):
        if words in log:
            return f"no score: {words[0].lower()}{words[1:]}"
    return "no score"


def gradebook_scores(name: str) -> dict[str, float]:
    """What nbgrader's gradebook says, by student."""
    from nbgrader.api import Gradebook

    with Gradebook("sqlite:///gradebook.db") as book:
        return {each.student_id: float(each.score) for each in book.assignment_submissions(name)}


# --- both, and the page -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One hand-in: what it deserves and what each gives."""

    what: str
    deserved: float
    plain: float | None
    remark: str
    ours: float
    status: str


def deserved(assignment: Assignment, handin: handins.HandIn) -> float:
    """The points of an example: of all parts but those that it says it loses."""
    whole = unusable_record(assignment, rebuild.Unusable("missing", ""), b"")
    parts = [(item.item, part) for item in whole.items for part in item.parts]
    return sum(part.max_points for item, part in parts if not handin.loses(item, part.name))


def examples(folder: Path, only: tuple[str, ...] | None = None, *, ours: bool = True) -> list[Row]:
    """Rows of the example hand-ins."""
    if ours:
        make_course(folder / "course", EXAMPLES)
    assignment = load_assignment(ROOT, EXAMPLES)
    make_plain(folder / "plain", assignment, ROOT / "solutions" / EXAMPLES)
    handins.write(assignment, folder / "plain" / "submitted")
    known = handins.HANDINS[EXAMPLES]
    students = sorted(only or known, key=lambda student: (student == LAST, student))
    whats = {student: (known[student].what, deserved(assignment, known[student])) for student in students}
    return rows(folder, EXAMPLES, dict(sorted(whats.items())), students, ours)


def malformed(folder: Path, only: tuple[str, ...] | None = None, *, ours: bool = True) -> list[Row]:
    """Rows of malformed hand-ins in the small course."""
    name = small_course.NAME
    course = small_course.make(folder / "course")
    assignment = load_assignment(course, name)
    make_plain(folder / "plain", assignment, course / "solutions" / name)
    first = small_course.hand_in(course, "first")
    data = test_malformed.right(first)
    shutil.copytree(course / "submitted", folder / "plain" / "submitted")
    whats = {}
    for form in only or MALFORMED:
        student = f"m{list(MALFORMED).index(form):02}"
        for place in (course, folder / "plain"):
            (place / "submitted" / student / name).mkdir(parents=True)
            test_malformed.FORMS[form].write(place / "submitted" / student / name, data)
        whats[student] = (form, test_malformed.FORMS[form].double + test_malformed.FORMS[form].half)
    return rows(folder, name, whats, list(whats), ours)


def rows(folder: Path, name: str, whats: dict, students: list[str], ours: bool) -> list[Row]:
    """Grade both ways."""
    plain = sandboxed(folder / "plain", name, students)
    records = {}
    if ours:
        assert cli.main(["--course", str(folder / "course"), "grade", name, "--quiet"]) == 0
        records = store.load_all(folder / "course" / "grades" / name)
    return [
        Row(what, points, plain[student]["score"], plain[student]["remark"],
            records[student].score if ours else points, records[student].status if ours else "")
        for student, (what, points) in whats.items()
    ]  # fmt: skip


TEXT = """\
(plain-nbgrader)=
# Beside plain nbgrader

% Written by `python -m tests.mha_grader.plain_nbgrader` (`make plain-nbgrader`); a test compares its rows.

The same hand-ins were given to `nbgrader autograde` {version} as it is and to `mha-grade grade`. For nbgrader the
hidden tests were rewritten for its way of grading: the cell after the student's code runs in the student's
kernel, compares with `numpy.testing`, and ends with the number of points that were earned. Its configuration names
the folder of the sources and nothing else. Each hand-in had a run of its own, in a sandbox without a network.

*Deserves* is the score that the hidden tests give to the code in the hand-in, wherever in the notebook it is, if it
can be identified; the target of a link was not handed in. *No score* means that the command ended with an
error for this hand-in, so that the gradebook has no test score for it. The remark is on nbgrader's run,
and the status is the one that `mha-grade` records.

nbgrader gives the deserved score to {right} of these {count} hand-ins, another one to {other}, and none to {none},
of which {nothing} deserve nothing; `mha-grade` gives the deserved score to {ours}.
"""


def page(parts: dict[str, list[Row]]) -> str:
    """The page, from the rows under each heading."""
    import nbgrader

    every = [row for found in parts.values() for row in found]
    text = TEXT.format(
        version=nbgrader.__version__,
        count=len(every),
        right=sum(row.plain is not None and same(row.plain, row.deserved) for row in every),
        other=sum(row.plain is not None and not same(row.plain, row.deserved) for row in every),
        none=sum(row.plain is None for row in every),
        nothing=sum(row.plain is None and row.deserved == 0 for row in every),
        ours=sum(same(row.ours, row.deserved) for row in every),
    )
    lines = [text]
    for heading, found in parts.items():
        lines.append(f"## {heading}\n")
        lines.append("| hand-in | deserves | nbgrader gives | mha-grade gives | status | nbgrader's remark |")
        lines.append("|---|---|---|---|---|---|")
        lines += [line(row) for row in found]
        lines.append("")
    return "\n".join(lines)


def line(row: Row) -> str:
    """A row as a line of the table."""
    plain = "none" if row.plain is None else f"{row.plain:g}"
    what = row.what.replace("%", "\\%")
    return f"| {what} | {row.deserved:g} | {plain} | {row.ours:g} | {row.status} | {row.remark} |"


def same(one: float, other: float) -> bool:
    """Whether two scores are the same but for rounding."""
    return abs(one - other) < 1e-6


def main() -> None:
    """Write the page."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        parts = {
            f"Examples for `{EXAMPLES}`": examples(Path(one)),
            "Malformed hand-ins for an assignment of two functions": malformed(Path(other)),
        }
    PAGE.write_text(page(parts), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        inside(sys.argv[1], sys.argv[2:])
    else:
        main()
