"""The course generated afresh from its sources, away from the tree."""

import shutil
from pathlib import Path

import pytest

from mha_grader.authoring import assignments, release

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("course")
    (folder / "solutions").mkdir()
    for path in [ROOT / "nbgrader_config.py", *(ROOT / "solutions").glob("*.py")]:
        shutil.copyfile(path, folder / path.relative_to(ROOT))
    for name in assignments(folder):
        release(folder, name)
    return folder
