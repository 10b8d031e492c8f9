"""Offer files of the library for download only if readers may have the solutions: they are in it.

A page says {download}`mha_lib/pruning.py <../mha_lib/pruning.py>`. With `self_study = false` in
solutions/course.toml the name stands there alone, and the book does not carry the file.
"""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from mha_grader.course.kit import self_study

LIBRARY = "../mha_lib/"


class WithoutLibrary(SphinxTransform):
    """Puts names in the place of downloads, before Sphinx collects the files."""

    default_priority = 500

    def apply(self) -> None:
        """Change one page."""
        if not self_study(Path(self.app.srcdir)):
            without_library(self.document)


def without_library(page: nodes.document) -> None:
    """Replace downloads of the library in a page by their names."""
    for download in list(page.findall(addnodes.download_reference)):
        if download["reftarget"].startswith(LIBRARY):
            download.replace_self(download.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_transform(WithoutLibrary)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
