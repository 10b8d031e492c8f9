"""A mistake is recognised however it is written, and no other is named in its place."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mha_grader.course.assignment import load_assignment
from mha_grader.grading.replay import Memory
from mha_grader.quality.kill_table import judge

from .handwriting import ANSWERS

COURSE = Path(__file__).parents[3]


@pytest.mark.parametrize(("place", "slug", "source"), ANSWERS)
def test_what_is_named_is_what_is_wrong(place, slug, source):
    name, item = place.split(".")
    names = {"np": np, "torch": torch}
    exec(source, names)
    row = judge(load_assignment(COURSE, name), item, "style", "tested", names[item], b"secret", Memory())
    assert row.score < row.max_score
    assert set(row.slugs.values()) == ({slug} if slug else set())
