"""A course that collects, and what is in its submitted/ afterwards."""

import zipfile

import pytest

from mha_grader.course.folders import Course
from mha_grader.instructor import collect
from tests.mha_grader.small_course import NAME


def archive(files, path):
    """A zip file of texts or bytes by name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in files.items():
            made.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return path


@pytest.fixture
def course(tmp_path):
    (tmp_path / "course").mkdir()
    return Course(tmp_path / "course")


@pytest.fixture
def gather(course, tmp_path):
    """Collect from an archive of these files."""

    def gather(files, scheme=None):
        return collect.collect(course, NAME, archive(files, tmp_path / "all.zip"), collect.Extra(scheme))

    return gather


def submitted(course):
    """All files in submitted/ with their texts."""
    paths = [path for path in course.submitted.rglob("*") if path.is_file()]
    return {str(path.relative_to(course.submitted)): path.read_text() for path in paths}


def folders(course):
    return sorted(path.parent.name for path in course.submitted.glob(f"*/{NAME}"))
