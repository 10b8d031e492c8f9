"""What the tests need that is generated and not committed: the instructor's notebooks."""

from pathlib import Path

from mha_grader.authoring import assignments, build

ROOT = Path(__file__).parents[1]


def pytest_configure(config):
    """Generate them, once for all worker processes. `exercises/` is left alone: a test compares it."""
    if not hasattr(config, "workerinput"):
        for name in assignments(ROOT):
            build(ROOT, name)
