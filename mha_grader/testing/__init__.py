"""What hidden tests are written with: everything public here is there in a hidden test without an import."""

from mha_grader.testing.testing import *  # noqa: F403
from mha_grader.testing.testing import __all__ as __all__
