"""What tests share: the instructor's notebooks, which are generated and not committed, and a browser."""

import gc
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

gc.disable()  # until all tests are collected: what is imported and made for that stays
ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")  # the first does a fifth less
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
    if hasattr(config, "workerinput") or not out_of_date():
        return
    from mha_grader.course.authoring import assignment_names, build

    for name in assignment_names(ROOT):
        build(ROOT, name)


def pytest_collection_modifyitems(items):
    """One file has the book built first; what else needs it comes behind long tests that do not. Short ones end."""
    first = "tests/book/test_calculator.py"
    long = ("tests/examples/", "tests/test_style.py", "tests/mha_grader/", "tests/solutions/")
    rooms = (first, *long, "tests/book/", "")
    items.sort(key=lambda item: next(i for i, room in enumerate(rooms) if item.nodeid.startswith(room)))


def pytest_collection_finish():
    """From here on there is garbage; what is there already is not looked through again."""
    gc.freeze()
    gc.enable()


def out_of_date():
    """Whether a notebook is missing, or older than a file that it is made from or with."""
    rooms = ("solutions", "mha_lib", "mha_grader/course", "mha_grader/testing")
    made_from = [path.stat().st_mtime for path in (ROOT / "solutions").glob("*.toml")]
    made_from += [path.stat().st_mtime for room in rooms for path in (ROOT / room).rglob("*.py")]
    names = [path.stem for path in (ROOT / "solutions").glob("*.py") if path.stem != "checks"]
    notebooks = [ROOT / "solutions" / name / f"{name}.ipynb" for name in names]
    return any(not path.exists() or path.stat().st_mtime < max(made_from) for path in notebooks)


@pytest.fixture(scope="session")
def launch():
    """Starts a browser, which reaches no other machine; Playwright itself starts once in a process."""
    with sync_playwright() as playwright:
        yield lambda *flags: playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])


@pytest.fixture(scope="session")
def chromium(launch):
    """One browser for all tests of a process."""
    browser = launch()
    yield browser
    browser.close()
