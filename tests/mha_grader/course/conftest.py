"""A course with the one assignment `demo`."""

import shutil

import pytest

from mha_grader.course.authoring import release
from tests.mha_grader.course.demo_course import make_course


@pytest.fixture
def course(tmp_path):
    """A course with the one assignment `demo`, not yet generated."""
    return make_course(tmp_path)


@pytest.fixture
def copied(released, tmp_path):
    """The course with its release, to be changed."""
    return shutil.copytree(released, tmp_path / "course")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The same, released. Only to be looked at."""
    course = make_course(tmp_path_factory.mktemp("released"))
    release(course, "demo")
    return course
