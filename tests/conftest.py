"""What tests share: the instructor's notebooks, which are generated and not committed, and a browser."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from mha_grader.course.authoring import assignments, build

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other host can even be looked up
]


def pytest_configure(config):
    """Generate them, once for all worker processes. `exercises/` is left alone: a test compares it."""
    if not hasattr(config, "workerinput"):
        for name in assignments(ROOT):
            build(ROOT, name)


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests of a process: Playwright allows no second one. It reaches no other machine."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
