"""What pyproject.toml cannot say: a wheel carries what checking one's own code needs of the course.

That is `solutions/` with the hidden tests and the rubrics, the released notebooks, and the book's order, titles and
address, in `mha_grader/learn/material`. With `self_study = false` in solutions/course.toml it has none of it.
"""

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
FILES = ("_toc.yml", "solutions/*.py", "solutions/*.toml", "exercises/*/*")
LINES = {
    "book/*.md": r"# .+\n",
    "nbgrader_config.py": r"c\.FeedbackExporter\.book_url = .*\n",
}  # nothing else of them


class BuildWithMaterial(build_py):
    """Adds the material to what is built; in an editable installation it is where it is."""

    def run(self):
        """Build the packages, then lay the material into them."""
        super().run()
        if self.editable_mode:
            return
        material = Path(self.build_lib) / "mha_grader" / "learn" / "material"
        shutil.rmtree(material, ignore_errors=True)  # of an earlier build
        if not tomllib.loads((ROOT / "solutions" / "course.toml").read_text("utf-8")).get(
            "self_study", False
        ):
            return
        for pattern in FILES:
            for path in ROOT.glob(pattern):
                if path.is_file() and not path.name.startswith("."):
                    shutil.copyfile(path, self.place(path))
        for path in ROOT.glob("solutions/*/*.ipynb"):
            if not path.parent.with_suffix(
                ".py"
            ).exists():  # nothing has generated it: it is the source itself
                shutil.copyfile(path, self.place(path))
        for pattern, line in LINES.items():
            for path in ROOT.glob(pattern):
                found = re.findall(line, path.read_text("utf-8"))
                self.place(path).write_text(found[0] if found else "", encoding="utf-8")

    def place(self, path):
        """Where a file of the repository lies in the material; its folder is made."""
        place = Path(self.build_lib) / "mha_grader" / "learn" / "material" / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


setup(cmdclass={"build_py": BuildWithMaterial})
