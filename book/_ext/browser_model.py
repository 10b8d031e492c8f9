"""Put the model in 8 bits beside the page that runs it, `_static/minilm/` in the built book.

It takes half a second and 23 MB. The model itself comes with the course's extra `heads`.
"""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PAGE = "book/all_heads"


def add_browser_model(app: Sphinx, failure: Exception | None) -> None:
    """Write the model's files, if the page is in this book and they are not there."""
    folder = Path(app.outdir) / "_static" / "minilm"
    if failure or PAGE not in app.env.found_docs or folder.exists():
        return
    from mha_lib.minilm.browser_model import write_browser_model

    try:
        write_browser_model(folder)
    except (FileNotFoundError, ImportError) as missing:
        raise ExtensionError(
            f"The page {PAGE} needs the model. Install it with: pip install -e '.[heads]'\n{missing}"
        ) from missing


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.connect("build-finished", add_browser_model)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
