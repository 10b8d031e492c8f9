"""Put MathJax into the book, so that no page asks another host for it.

The script comes out of the installed package `sphinx-mathjax-offline`: one file that holds the fonts as well. (Used
as an extension, that package would copy 24 MB into every book.)
"""

import hashlib
from importlib.metadata import files

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

SCRIPT = "tex-svg-full.js"
SHA256 = "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6"  # as in npm's mathjax 3.2.2


def add_mathjax(app: Sphinx, config: Config) -> None:
    """Copy the script to `_static` and load it from there."""
    script = next(file for file in files("sphinx-mathjax-offline") or () if file.name == SCRIPT).locate()
    if hashlib.sha256(script.read_bytes()).hexdigest() != SHA256:
        raise ExtensionError(f"{script} is not the script of MathJax 3.2.2")
    config.html_static_path.append(str(script))
    config.mathjax_path = SCRIPT


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.connect("config-inited", add_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
