"""What pyproject.toml cannot say: a wheel carries what checking one's own code needs of the course.

That is `solutions/` with the hidden tests and the rubrics, the released notebooks and the book's order, in the
folder `mha_grader/learn/material`. With `self_study = false` in solutions/course.toml it carries none of it.
"""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
FILES = ("_toc.yml", "solutions/*.py", "solutions/*.toml", "exercises/*/*")


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
            for path in sorted(ROOT.glob(pattern)):
                if path.is_file() and not path.name.startswith("."):
                    place = material / path.relative_to(ROOT)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, place)


setup(cmdclass={"build_py": BuildWithMaterial})
