"""What the tests of the reference share: random numbers that do not change, and laws that are not timed."""

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("untimed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def rng():
    return np.random.default_rng(7)
