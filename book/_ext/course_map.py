"""What the course takes: its parts with the time of each chapter and assignment.

`{course-map}` makes a table of the parts that hold an assignment, in the order of the table of contents. The
minutes of chapters are those in their heads; points and minutes of assignments come from the notebooks.
`{course-items}` makes a table of all graded items.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chapter_head import link_to, minutes
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective


@dataclass(frozen=True)
class Item:
    """A graded item of an assignment."""

    name: str
    points: float
    minutes: int


def items_of(notebook: Path) -> list[Item]:
    """The items of a released notebook, with the minutes that the table at its top gives.

    Raises:
        ExtensionError: if the table lacks an item.
    """
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    times = dict(re.findall(r"^\| \d+ \| `(\w+)` \|.*\| (\d+) \|$", text, re.MULTILINE))
    graded = [cell["metadata"]["nbgrader"] for cell in cells if "nbgrader" in cell["metadata"]]
    points = {each["grade_id"].removeprefix("test_"): each["points"] for each in graded if each["grade"]}
    if missing := points.keys() - times.keys():
        raise ExtensionError(
            f"{notebook}: the table of items has no minutes for {', '.join(sorted(missing))}"
        )
    return [Item(name, points[name], int(times[name])) for name in points]


def hours_and_minutes(total: int) -> str:
    """A time as people say it.

    >>> hours_and_minutes(45), hours_and_minutes(120), hours_and_minutes(135)
    ('45 min', '2 h', '2 h 15 min')
    """
    hours, rest = divmod(total, 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


class CourseTable(SphinxDirective):
    """What both tables need."""

    def parts(self) -> list[tuple[str, list[str], list[str]]]:
        """(name, chapters, assignments) of each part that has an assignment; pages by their names."""
        trees = self.config.external_site_map.root.subtrees
        pages = [(tree.caption or "", tree.files()) for tree in trees]
        parts = [
            (name, [page for page in files if not is_assignment(page)], list(filter(is_assignment, files)))
            for name, files in pages
        ]
        return [part for part in parts if part[2]]

    def items(self, page: str) -> list[Item]:
        """The items of an assignment."""
        notebook = Path(self.env.srcdir) / f"{page}.ipynb"
        self.env.note_dependency(str(notebook))
        return items_of(notebook)

    def assignment(self, page: str) -> nodes.Node:
        """A link to an assignment's page."""
        return link_to(self.env.docname, "doc", f"/{page}", page.split("/")[-1])


class CourseMap(CourseTable):
    """The parts of the course, what there is to read and to build, and how long it takes."""

    def run(self) -> list[nodes.Node]:
        """A table; the minutes of chapters are put in when all pages have been read."""
        self.env.metadata[self.env.docname]["has_times"] = True
        rows, chapters, minutes_of_assignments = [], [], 0
        for name, read, build in self.parts():
            chapters += read
            links = [
                [link_to(self.env.docname, "doc", f"/{page}"), nodes.Text(" "), time_of(page)]
                for page in read
            ]
            built = []
            for page in build:
                times = sum(item.minutes for item in self.items(page))
                minutes_of_assignments += times
                built.append([self.assignment(page), nodes.Text(f" {hours_and_minutes(times)}")])
            rows.append([[[nodes.Text(name)]], links, built])
        total = [[time_of(*chapters)]], [[nodes.Text(hours_and_minutes(minutes_of_assignments))]]
        rows.append([[[nodes.Text("Together")]], *total])
        return [table(["part", "read", "build"], rows, "course-map")]


class CourseItems(CourseTable):
    """All graded items of all assignments."""

    def run(self) -> list[nodes.Node]:
        """A table; an assignment's own row gives its sums."""
        rows = []
        for _, _, build in self.parts():
            for page in build:
                items = self.items(page)
                points, times = sum(item.points for item in items), sum(item.minutes for item in items)
                rows.append([[[self.assignment(page)]], *numbers(points, times, nodes.strong)])
                rows += [
                    [[[nodes.literal("", item.name)]], *numbers(item.points, item.minutes, nodes.inline)]
                    for item in items
                ]
        return [table(["assignment and items", "points", "time"], rows, "course-items")]


def is_assignment(page: str) -> bool:
    """Whether a page is an assignment's notebook."""
    return page.startswith("exercises/")


def numbers(points: float, time: int, node: Any) -> list[list[list[nodes.Node]]]:
    """Two cells of a table."""
    return [[[node("", f"{points:g}")]], [[node("", hours_and_minutes(time))]]]


def time_of(*pages: str) -> nodes.inline:
    """A place for the time that these pages take."""
    return nodes.inline("", "", classes=["time-of-pages"], pages=list(pages))


def table(head: list[str], rows: list[list[list[list[nodes.Node]]]], name: str) -> nodes.table:
    """A table whose cells have a line for each list of nodes."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", row([[[nodes.Text(text)]] for text in head]))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group, classes=[name])


def row(cells: Iterable[list[list[nodes.Node]]]) -> nodes.row:
    """A row of a table."""
    return nodes.row(
        "", *(nodes.entry("", *(nodes.paragraph("", "", *line) for line in cell)) for cell in cells)
    )


def put_times(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Write the times of chapters where there is a place for them."""
    for place in document.findall(nodes.inline):
        if "time-of-pages" in place["classes"]:
            total = sum(minutes(app.env.metadata[page]["words"]) for page in place["pages"])
            place += nodes.Text(hours_and_minutes(total))


def pages_with_times(app: Sphinx, env: Any) -> list[str]:
    """The pages that must be written anew, since the length of another page may have changed."""
    return [name for name in env.found_docs if "has_times" in env.metadata[name]]


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("course-map", CourseMap)
    app.add_directive("course-items", CourseItems)
    app.connect("doctree-resolved", put_times)
    app.connect("env-updated", pages_with_times)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
