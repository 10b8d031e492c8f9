"""The sizes of published models, from `book/published_models.json`, as tables and for the calculator.

`{published-models} caption` makes a table. `:columns:` names its columns between commas, `:models:` the models
between semicolons; without it all are shown. `:name:` is a label for the table.
`{calculator-models}` puts all of them into the page as data, where `book/_static/calculator.js` finds them.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MODELS = Path(__file__).parents[1] / "published_models.json"
COLUMNS = {  # from a name in the directive to a heading and what a model has there
    "model": ("model", lambda model: model["name"]),
    "d_model": ("d_model", lambda model: model["d_model"]),
    "heads": ("heads", lambda model: model["heads"]),
    "kv_heads": ("K/V heads", lambda model: model["kv_heads"]),
    "d_k": ("d_k", lambda model: model["d_k"]),
    "ratio": ("h·d_k / d_model", lambda model: f"{model['heads'] * model['d_k'] / model['d_model']:.3g}"),
    "layers": ("layers", lambda model: model["layers"]),
    "source": ("source", lambda model: f"{{cite:t}}`{model['source']}`"),
}


def load_models() -> list[dict[str, Any]]:
    """All models, as dictionaries with `name`, `d_model`, `heads`, `kv_heads`, `d_k`, `layers` and `source`."""
    return list(json.loads(MODELS.read_text("utf-8")))


def table(columns: list[str], models: list[dict[str, Any]]) -> str:
    """The rows of a list table, as MyST text.

    >>> print(table(["model", "ratio"], load_models()[:1]))
    * - model
      - h·d_k / d_model
    * - Transformer, base
      - 1
    """
    rows = [[COLUMNS[name][0] for name in columns]]
    rows += [[str(COLUMNS[name][1](model)) for name in columns] for model in models]
    return "\n".join("* - " + "\n  - ".join(row) for row in rows)


class PublishedModels(SphinxDirective):
    """A table of models."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "columns": directives.unchanged_required,
        "models": directives.unchanged_required,
        "name": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """The table; a model or a column that does not exist is an error."""
        self.env.note_dependency(str(MODELS))
        columns = [name.strip() for name in self.options["columns"].split(",")]
        models = {model["name"]: model for model in load_models()}
        wanted = [name.strip() for name in self.options.get("models", ";".join(models)).split(";")]
        unknown = [name for name in columns if name not in COLUMNS] + [
            name for name in wanted if name not in models
        ]
        if unknown:
            raise self.error(
                f"unknown: {unknown}; there are the columns {list(COLUMNS)} and the models {list(models)}"
            )
        head = [f":::{{list-table}} {''.join(self.arguments)}", ":header-rows: 1"]
        head += [f":name: {self.options['name']}"] if "name" in self.options else []
        text = "\n".join([*head, "", table(columns, [models[name] for name in wanted]), ":::"])
        return self.parse_text_to_nodes(text)


class CalculatorModels(SphinxDirective):
    """All models as data in the page."""

    def run(self) -> list[nodes.Node]:
        """One element that nobody sees."""
        self.env.note_dependency(str(MODELS))
        data = json.dumps(load_models(), ensure_ascii=False).replace("<", "\\u003c")
        html = f'<script type="application/json" id="hc-models">{data}</script>'
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this when it loads the extension."""
    app.add_directive("published-models", PublishedModels)
    app.add_directive("calculator-models", CalculatorModels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
