"""Build the book into `_build/html`; run only the pages that must be run.

    python -m book.build

* If nothing has changed since the last good build, nothing is done.
* If nothing but the prose of pages has changed, only these pages are written anew.
* Otherwise every page is, because each shows the titles of others; but cells are run only on pages whose results
  are not in `_build/.jupyter_cache`. That cache knows a result by the page's cells; what else decides results
  (`mha_lib`, Python, the pinned packages) empties it.
* A page whose cells read other files of the repository says `execution_mode: force` in its head: it is run
  whenever it is written.
* The other pages run several at a time, before Sphinx starts, which would take one after the other.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path

import yaml
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_cache.executors.basic import ExecutionWorkerLocalMProc, ProcessData
from myst_nb.core.read import is_myst_markdown_notebook

from book.kernels import IMPORTED, kernels_that_start_at_once
from mha_grader.course.kit import NAME, make_public_kit

RESULTS_REST_ON = ["mha_lib", "constraints.txt"]
BOOK_RESTS_ON = [*RESULTS_REST_ON, "_config.yml", "_toc.yml", "book", "exercises", "benchmarks/results"]
BOOK_RESTS_ON += ["solutions/course.toml", "pyproject.toml"]  # what may be public, and what notebooks install
AT_ONCE = min(4, os.cpu_count() or 1)  # a page that loads torch takes about half a gigabyte
# Most of what a build makes, it needs until its end: a fifth of its time would go into looking for garbage.
JUPYTER_BOOK = "import gc; gc.set_threshold(200_000, 50, 50); from jupyter_book.cli.main import main; main()"
STRICT = ["--warningiserror", "--nitpick", "--keep-going"]
# What a page has that can change how another page looks, or the numbers in it: its head, fenced blocks, headings,
# labels, directives and their options, roles, links and HTML. The rest is prose.
NOT_PROSE = re.compile(
    r"\A---\n.*?^---$|^(?P<fence>`{3,}).*?^(?P=fence)$|^[#(:][^\n]*$|\{[\w:-]+\}`[^`]*`|\]\([^)]*\)|<[^>\n]*>",
    re.MULTILINE | re.DOTALL,
)


class PageCache(JupyterCacheBase):  # type: ignore[misc]  # it has no types
    """The results of the pages' cells, of which none is dropped to make room.

    Its base looks for what to drop in two steps; a result that another process stores between them would go.
    """

    def truncate_caches(self) -> None:
        """Drop nothing."""


def digest(root: Path, names: Iterable[str]) -> str:
    """A digest of Python's version and of all files that are named or lie in folders that are."""
    total = hashlib.sha256(sys.version.encode())
    for name in names:
        for path in sorted([root / name, *(root / name).rglob("*")]):
            if path.is_file() and path.suffix != ".pyc":
                total.update(repr((path.relative_to(root).as_posix(), path.read_bytes())).encode())
    return total.hexdigest()


def shape(root: Path) -> str:
    """A digest of all that the book rests on, but for the prose of its pages."""
    pages = sorted(root.glob("book/*.md"))
    kept = [(page.name, [match[0] for match in NOT_PROSE.finditer(read(page))]) for page in pages]
    others = [name for name in BOOK_RESTS_ON if name != "book"]
    others += [path.relative_to(root).as_posix() for path in root.glob("book/*") if path not in pages]
    return hashlib.sha256(repr((kept, digest(root, sorted(others)))).encode()).hexdigest()


def read(path: Path) -> str:
    """What stands in a small file; nothing if there is none."""
    return path.read_text("utf-8") if path.exists() else ""


def pages_to_run(root: Path) -> list[Path]:
    """The pages with cells whose results may be remembered."""
    pages = {page: read(page) for page in sorted(root.glob("book/*.md"))}
    return [
        page
        for page, text in pages.items()
        if is_myst_markdown_notebook(text) and "execution_mode: force" not in text
    ]


def work_to_do(root: Path) -> list[ProcessData]:
    """The pages whose results the cache lacks; it is emptied first if they may no longer be right."""
    folder, stamp = root / "_build" / ".jupyter_cache", root / "_build" / "cache.digest"
    now = digest(root, RESULTS_REST_ON)
    if read(stamp) != now:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamp.write_text(now)
    cache = PageCache(folder)
    pages = pages_to_run(root)
    for page in pages:
        cache.add_nb_to_project(str(page), read_data={"name": "myst_nb_md", "type": "plugin"})
    timeout = yaml.safe_load(read(root / "_config.yml"))["execute"]["timeout"]
    return [
        ProcessData(record.pk, record.uri, cache, timeout, False)
        for record in cache.list_unexecuted(filter_uris=[str(page) for page in pages])
    ]


def run(work: list[ProcessData]) -> None:
    """Put the results of pages into the cache; what fails is left for Sphinx to report."""
    print("running", *(Path(task.uri).stem for task in work), flush=True)
    with Pool(AT_ONCE) as pool:
        pool.map(ExecutionWorkerLocalMProc(), work, chunksize=1)
        pool.close()  # and not terminate: what runs notebooks may swallow the signal, and then nothing ends
        pool.join()


def build(root: Path) -> int:
    """Build what is not there yet; the exit status."""
    html, stamp, shape_stamp = (root / "_build" / name for name in ("html", "book.digest", "shape.digest"))
    now, shape_now = digest(root, BOOK_RESTS_ON), shape(root)
    if (html / "index.html").exists() and read(stamp) == now:
        print("The book is up to date.")
        return 0
    os.environ["OMP_NUM_THREADS"] = "1"  # pages run side by side, and sums come out alike on every machine
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(root), "--quiet", *STRICT]
    if not (html / "index.html").exists() or read(shape_stamp) != shape_now:
        shutil.rmtree(html, ignore_errors=True)  # else pages that are gone would stay
        command.append("--all")
    for file in (stamp, shape_stamp):  # a build that fails is nothing to go on from
        file.unlink(missing_ok=True)
    work = work_to_do(root)
    # For a few pages it takes longer to import all that pages may need.
    with kernels_that_start_at_once(IMPORTED if len(work) > AT_ONCE else IMPORTED[:1]) as kernels:
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [kernels, os.environ.get("JUPYTER_PATH")]))
        if work:
            run(work)
        status = subprocess.run(command, check=False).returncode  # it runs the pages that are always run
    if status == 0:
        stamp.write_text(now)
        shape_stamp.write_text(shape_now)
    return status


if __name__ == "__main__":
    course = Path(__file__).resolve().parents[1]
    if status := build(course):
        sys.exit(status)
    if (course / "pyproject.toml").exists():  # the kit installs what it names
        with tempfile.TemporaryDirectory() as made:  # the start page links to the kit
            shutil.copyfile(make_public_kit(course, Path(made)), course / "_build" / "html" / f"{NAME}.zip")
