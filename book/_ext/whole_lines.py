"""Show what a cell printed as it was printed, in one box.

A kernel sends what a cell prints in pieces, and how busy the machine is decides where a piece ends. MyST-NB merges
pieces (`nb_merge_streams`), but puts a line break between any two, also in the middle of a line.
"""

from typing import Any

import myst_nb.core.render
from sphinx.application import Sphinx


def join_streams(outputs: list[Any]) -> list[Any]:
    """A cell's outputs with all pieces of a stream joined where the first one stood."""
    joined: list[Any] = []
    streams: dict[str, Any] = {}
    for output in outputs:
        if output["output_type"] != "stream":
            joined.append(output)
        elif output["name"] in streams:
            streams[output["name"]]["text"] += output["text"]
        else:
            streams[output["name"]] = output.copy()
            joined.append(streams[output["name"]])
    for stream in streams.values():
        stream["text"] = stream["text"].rstrip() + "\n"
    return joined


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    myst_nb.core.render.coalesce_streams = join_streams
    return {"parallel_read_safe": True, "parallel_write_safe": True}
