"""The files that lie beside a notebook, where they are made. All else takes whatever lies there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mha_lib
from mha_grader.course.given_file import GIVEN, given_file
from mha_grader.course.visible_checks import CHECKS, visible_checks


def helper_files(source: Any, sources: Path) -> dict[str, bytes]:
    """The contents of the files by name.

    Args:
        source: the text source, as `read_source` gives it.
        sources: the folder of the text sources.

    Raises:
        SourceError: if the source is not right.
    """
    checks = visible_checks(source, sources)
    made = {CHECKS: checks.file() if checks else None, GIVEN: given_file(source, sources)}
    files = {name: text.encode() for name, text in made.items() if text is not None}
    taken = [Path(mha_lib.__path__[0]) / name for name in source.metadata["mha"].get("files", [])]
    return files | {path.name: path.read_bytes() for path in taken}
