"""nbgrader's configuration: where things lie, and how a release is made."""

from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import ClearSolutions

from mha_grader.authoring import ClearSolutionsKeepTemplates

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - the loader provides it

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.GenerateAssignment.preprocessors = [
    ClearSolutionsKeepTemplates if step is ClearSolutions else step
    for step in GenerateAssignment().preprocessors
]
