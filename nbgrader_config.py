"""nbgrader's configuration: where things lie, how a release is made, and how hand-ins are graded."""

from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

from mha_grader.course.authoring import ClearSolutionsKeepTemplates
from mha_grader.instructor.late import LatePenalties
from mha_grader.instructor.plugin import (
    FeedbackExporter,
    GradingExporter,
    KeepMarks,
    inert_markdown,
    submitted_timestamp,
)

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - the loader provides it

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.GenerateAssignment.preprocessors = [
    ClearSolutionsKeepTemplates if step is ClearSolutions else step
    for step in GenerateAssignment().preprocessors
]

# nbgrader executes nothing: GradingExporter grades in the sandbox, nbgrader stores the scores.
c.Autograde.exporter_class = GradingExporter
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [KeepMarks, LatePenalties]
# Late hand-ins: days of a term without a penalty, and nbgrader's penalty for the rest ("none" or "zero"; or
# c.AssignLatePenalties.plugin_class = "FILE.CLASS" for a plugin in FILE.py beside this file).
c.LatePenalties.late_days = 0
c.LateSubmissionPlugin.penalty_method = "none"
c.GenerateFeedback.exporter_class = FeedbackExporter
# Where students read the book: the address of the folder with its pages, such as
# "https://example.org/attention/book/". Feedback and reports link there; "" for no links.
c.FeedbackExporter.book_url = ""
c.HTMLExporter.filters = {"markdown2html": inert_markdown}  # formgrader shows what students wrote
NbGraderAPI.get_submitted_timestamp = submitted_timestamp  # it has no setting for this
