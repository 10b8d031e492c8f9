"""What nbgrader_config.py plugs into nbgrader: our verdicts where nbgrader would run a kernel.

nbgrader asks an *exporter* for a notebook where it reads a hand-in (`nbgrader autograde`, and the button in
formgrader) and for a page where it writes feedback. `GradingExporter` answers with the released notebook,
the student's code in it and our verdict in the outputs of the test cells, so that nbgrader itself stores the
scores; `FeedbackExporter` answers with our page. Nothing of a hand-in is executed by nbgrader, and no hidden
test is ever in what these two return. For the person who marks, the graded notebook holds the model answers; the
page for students does not.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbgrader.converters.base import NbGraderException
from traitlets import Unicode

from mha_grader.course.assignment import Assignment, Cell, CourseError, load_assignment
from mha_grader.course.folders import Course
from mha_grader.course.records import ItemRecord, SubmissionRecord
from mha_grader.grading import rebuild, reference
from mha_grader.grading.grade import grade_student
from mha_grader.grading.settings import settings_of
from mha_grader.instructor import feedback, gradebook, nbgrader_internals
from mha_grader.instructor.nbgrader_internals import KeepMarks, inert_markdown, submitted_timestamp
from mha_grader.instructor.timestamps import small_file, timestamp
from mha_grader.sandbox.fork_server import SandboxUnavailable
from mha_grader.sandbox.sandbox import probe

__all__ = [  # what nbgrader_config.py takes
    "FeedbackExporter",
    "GradingExporter",
    "KeepMarks",
    "inert_markdown",
    "submitted_timestamp",
]


def _copy(source: Path, destination: Path, name: str) -> None:
    if text := small_file(source / name):
        (destination / name).write_text(text, "utf-8")


class GradingExporter(NotebookExporter):
    """Gives nbgrader the graded notebook in the place of the one that was handed in.

    nbgrader makes it after it has looked for hand-ins and before it reads the first one: at that moment its
    converter is taken over (see `nbgrader_internals`).
    """

    def __init__(self, **kwargs: Any):
        """Take over from the converter that makes it.

        Raises:
            NbGraderException: if the course or this machine is not ready to grade; the reason is logged.
        """
        super().__init__(**kwargs)
        converter: Any = self.parent
        theirs = converter.coursedir
        self.course = Course(Path(theirs.root))
        try:
            self.assignment = load_assignment(self.course.root, theirs.assignment_id)
            gradebook.check(theirs.db_url, self.assignment)
            reference.check_once(self.course, self.assignment)
            probe(settings_of(self.course).layout(self.assignment))
        except (CourseError, SandboxUnavailable) as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from None
        nbgrader_internals.take_over(converter, self.assignment.name)

    def from_filename(
        self, filename: str, resources: Any = None, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The graded notebook for a hand-in. What nbgrader has just written itself is read as it is."""
        converter: Any = self.parent
        coursedir, handed_in = converter.coursedir, Path(filename).parent
        student = resources["nbgrader"]["student"]
        written = Path(coursedir.format_path(coursedir.autograded_directory, student, self.assignment.name))
        if handed_in == written:
            return super().from_filename(filename, resources, **kwargs)
        record = grade_student(self.course, self.assignment, handed_in)
        written.mkdir(parents=True, exist_ok=True)
        if timestamp(handed_in):
            _copy(handed_in, written, "timestamp.txt")
        _copy(handed_in, written, "submission_secret.txt")  # nbgrader's exchange looks for it
        return self.from_notebook_node(graded_notebook(self.assignment, record, handed_in), resources)


def graded_notebook(assignment: Assignment, record: SubmissionRecord, handed_in: Path) -> Any:
    """The released notebook with a student's code, and our verdict in the outputs of its test cells.

    Args:
        assignment: the assignment.
        record: the student's.
        handed_in: the student's folder, which the cells that the student added are taken from.
    """
    released = (assignment.files / f"{assignment.name}.ipynb").read_text("utf-8")
    notebook = nbformat.v4.reads(released)  # what comes of it is validated, when nbgrader takes it
    items = {item.item: item for item in record.items}
    rebuilt = _rebuilt(assignment, handed_in)
    sources = rebuilt.sources | {
        assignment.cell("solution", item.item).item: item.source for item in record.items if record.usable
    }
    added = _added_cells(rebuilt)
    cells = [_about(record)] if record.notes else []
    cells += added.get(None, [])
    for place, cell in zip(assignment.cells, notebook.cells, strict=True):
        answer = rebuilt.answers.get(place.id)
        if place.by_person:
            cells += _marking(assignment, place)
            if answer is not None and place.kind != "task":
                cell.source = answer
        elif place.kind == "solution" and record.usable:
            cell.source = sources[place.item]
        elif place.kind == "test" and place.item is not None:
            cell.outputs = _outputs(items[place.item], place.points)
        cells += [cell, *added.get(place.id, [])]
        if answer is not None and place.kind == "task":
            cells.append(nbformat.v4.new_markdown_cell(answer, id=f"added-to-{place.id}"[:64]))
    notebook.cells = cells
    return notebook


def _marking(assignment: Assignment, answer: Cell) -> list[Any]:
    """A cell for the person who marks an answer: what earns points, comments to choose from, and a model answer."""
    model = answer.source if answer.source.strip() != answer.released.strip() else ""
    rubric = assignment.rubrics.get(answer.id)
    if not model and rubric is None:  # there is nothing to say
        return []
    criteria = rubric.in_markdown() if rubric else ""
    if any(criteria in cell.released for cell in assignment.cells):  # they stand in the question
        criteria = ""
    comments = rubric.comments if rubric else ()
    text = feedback.render(
        "marking.txt.j2", item=answer.id, criteria=criteria, comments=comments, model=model
    )
    return [nbformat.v4.new_markdown_cell(text, id=f"marking-{answer.id}"[:64])]


def _rebuilt(assignment: Assignment, handed_in: Path) -> rebuild.Rebuilt:
    """What is graded of a hand-in; empty if it is unusable."""
    try:
        return rebuild.rebuild(assignment, rebuild.find(handed_in, assignment).data)
    except rebuild.Unusable:
        return rebuild.Rebuilt({})


def _added_cells(rebuilt: rebuild.Rebuilt) -> dict[str | None, list[Any]]:
    ids = (f"{nbgrader_internals.ADDED}{number}" for number in itertools.count(1))
    return {
        anchor: [nbformat.v4.new_code_cell(source, id=next(ids)) for source in sources]
        for anchor, sources in rebuilt.added.items()
    }


def _about(record: SubmissionRecord) -> Any:
    """A cell on top that says what was odd about the hand-in."""
    return nbformat.v4.new_markdown_cell(
        feedback.render("about.html.j2", record=record), id="about-this-hand-in"
    )


def _outputs(item: ItemRecord, max_points: float) -> list[Any]:
    """The verdict for people, and the number that nbgrader reads as the score."""
    html, text = feedback.render("verdict.html.j2", item=item), feedback.render("verdict.txt.j2", item=item)
    score = repr(min(item.score, max_points))  # nbgrader refuses more than all points
    verdict = {"output_type": "display_data", "data": {"text/html": html, "text/plain": text}}
    number = {"output_type": "execute_result", "data": {"text/plain": score}, "execution_count": None}
    return [nbformat.from_dict(output | {"metadata": {}}) for output in (verdict, number)]


class FeedbackExporter(Exporter):
    """Gives nbgrader our page where `nbgrader generate_feedback` would make one from the graded notebook."""

    book_url = Unicode(help="Address of the folder with the book's pages, to which feedback links.").tag(
        config=True
    )

    def _file_extension_default(self) -> str:
        return ".html"

    def from_filename(
        self, filename: str, resources: Any = None, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """The page for a student.

        Raises:
            CourseError: if nothing is known about this student.
        """
        converter: Any = self.parent
        course = Course(Path(converter.coursedir.root))
        names = resources["nbgrader"]
        page = feedback.page_of(course, names["assignment"], names["student"])
        return page, resources | {"output_extension": self.file_extension, "outputs": {}}
