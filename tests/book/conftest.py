"""The built book, a browser without a network, and a server for the book."""

import contextlib
import fcntl
import functools
import http.server
import importlib
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
SHELF = "courses/attention"


def toc_pages():
    """Every page that `_toc.yml` lists, without suffix, in reading order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return [toc["root"], *(name for part in toc["parts"] for name in listed(part["chapters"]))]


def listed(entries):
    """The pages of some entries of `_toc.yml`, each followed by the pages below it."""
    for entry in entries:
        yield entry["file"]
        yield from listed(entry.get("sections", []))


@pytest.fixture(scope="session")
def book():
    """The folder of the built book, built here as `make book` does."""
    HTML.parent.mkdir(exist_ok=True)
    with (HTML.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build, also when tests run in several processes
        command = [sys.executable, "-m", "book.build"]
        build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert build.returncode == 0, build.stdout[-4000:] + build.stderr[-4000:]
    return HTML


@contextlib.contextmanager
def watched_page(chromium):
    """A page on which everything that goes wrong is collected in `page.troubles`, and all requests too."""
    context = chromium.new_context()
    page = context.new_page()
    forget(page)
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("requestfailed", lambda request: page.troubles.append(f"failed: {request.url}"))
    page.on("response", lambda r: page.troubles.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.on("pageerror", lambda error: page.troubles.append(f"error: {error}"))
    page.on("console", lambda m: page.troubles.append(f"console: {m.text}") if m.type == "error" else None)
    yield page
    context.close()


def forget(page):
    """Begin to collect anew."""
    page.troubles, page.requests = [], []


@pytest.fixture(scope="module")
def window(chromium):
    """A page for all tests of a module, watched: what it loads again and again is compiled once."""
    with watched_page(chromium) as page:
        yield page


@pytest.fixture
def page(chromium):
    """A page of a test's own, watched."""
    with watched_page(chromium) as page:
        yield page


class _Shelf(http.server.SimpleHTTPRequestHandler):
    """The book does not stand at the top of its host."""

    def log_message(self, *args):
        pass

    def translate_path(self, path):
        within = path.startswith(f"/{SHELF}/")
        return super().translate_path(path.removeprefix(f"/{SHELF}")) if within else "nowhere"

    def do_GET(self):
        if self.path == "/favicon.ico":  # a browser asks for it by itself, on the redirecting start page
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


@contextlib.contextmanager
def served(folder):
    """The address of a local server for a folder."""
    handler = functools.partial(_Shelf, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{SHELF}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def addresses(book):
    """Where the book is: as a folder, and below some path of a local server."""
    with served(book) as address:
        yield {"file": book.as_uri(), "http": address}


def extension(name):
    """One of the book's Sphinx extensions, which find each other where Sphinx finds them."""
    path = [str(ROOT / "book"), str(ROOT / "book" / "_ext")]
    sys.path[:0] = path
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = [entry for entry in sys.path if entry not in path]
