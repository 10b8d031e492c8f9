"""How long the book takes to build: from nothing, with nothing changed, with one page changed.

    python -m benchmarks.book

It builds in a copy of the repository, so that the book at hand stays as it is. Processor seconds are those of the
build and of all that it starts. The seconds of a page are those of its kernel, while others ran beside it.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache

from benchmarks.measure import ROOT, command_line, write

CHANGED = Path("book/one_head.md")


def used() -> float:
    """Processor seconds of all processes that we started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def build(folder: Path) -> dict[str, Any]:
    """Build the book there; seconds, and the pages that were run before Sphinx started."""
    before, start = used(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "book.build"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"the build failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    ran = re.search(r"^running (.+)$", done.stdout, re.MULTILINE)
    return {"wall_s": wall, "processor_s": used() - before, "ran": ran[1].split() if ran else []}


def copy_of_the_repository(folder: Path) -> Path:
    """What git knows, as it is now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in names.stdout.split("\0")[:-1]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def change_a_cell(page: Path) -> None:
    """Another line at the end of the page's first cell."""
    before, cell, after = page.read_text("utf-8").partition("```{code-cell}")
    first, end, rest = after.partition("\n```\n")
    page.write_text(before + cell + first + "\n# a line" + end + rest, "utf-8")


def measure(folder: Path) -> dict[str, Any]:
    """The three builds, one after the other."""
    results = {"from_nothing": build(folder)}
    records = get_cache(folder / "_build" / ".jupyter_cache").list_cache_records()
    pages = {Path(record.uri).stem: record.data["execution_seconds"] for record in records}
    results["nothing_changed"] = build(folder)
    change_a_cell(folder / CHANGED)
    results["one_page_changed"] = build(folder)
    return {**results, "page_s": dict(sorted(pages.items()))}


def main() -> None:
    """Measure, print, store."""
    arguments = command_line(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(copy_of_the_repository(Path(folder)))
    for name, taken in results.items():
        if "wall_s" in taken:
            ran = ", ".join(taken["ran"]) or "nothing"
            print(
                f"{name:18} {taken['wall_s']:6.1f} s wall {taken['processor_s']:6.1f} s processor   ran {ran}"
            )
    for name, seconds in results["page_s"].items():
        print(f"   {name:20} {seconds:6.1f} s")
    print("written:", write(arguments.results, "book", results))


if __name__ == "__main__":
    main()
