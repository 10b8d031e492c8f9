"""Odd forms of a hand-in, each with the status and the score that it deserves.

Most of them hold the right solution of the small course, so that what a form costs is what the form itself lost.
"""

import base64
import json
import os
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mha_grader.grading import rebuild
from tests.mha_grader.small_course import DOUBLE, HALF, NAME

FILE = f"{NAME}.ipynb"
STUB = "def double(x):\n    raise NotImplementedError()"
MAY_READ_ALL = os.geteuid() == 0  # no permission keeps the superuser out
LONG = "x" * 128  # what nbgrader's database holds


@dataclass(frozen=True)
class Form:
    """How something is handed in, and what it deserves."""

    write: Callable[[Path, bytes], object]  # from the student's folder, which exists, and a right notebook
    status: str = "graded"
    double: float = 0.3
    half: float = 3.0
    student: str | None = None  # an id of its own


def unusable(write, status):
    return Form(write, status, 0, 0)


# --- ways to change a right hand-in -----------------------------------------------------------------------


def text(change):
    """Other bytes in the file."""
    return lambda folder, data: (folder / FILE).write_bytes(change(data))


def notebook(change):
    """A change to the notebook, in place."""

    def changed(data):
        content = json.loads(data)
        change(content)
        return json.dumps(content).encode()

    return text(changed)


def cells(change):
    """A change to the list of cells, in place."""
    return notebook(lambda content: change(content["cells"]))


def of(grade_id, **fields):
    """Other fields in the cell of this grade_id."""
    return cells(lambda each: at(each, grade_id).update(fields))


def source(double):
    """Another text in the cell of `double`."""
    return of("double", source=double)


def at(each, grade_id):
    return next(cell for cell in each if cell["metadata"]["nbgrader"]["grade_id"] == grade_id)


def code(source, **fields):
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], **fields}


def added(*sources):
    """Cells of the student's own, behind the imports."""
    return cells(lambda each: each.__setitem__(slice(2, 2), [code(source) for source in sources]))


def every(change):
    """A change to each cell, in place."""
    return cells(lambda each: [change(cell) for cell in each])


def stub_and(written):
    """`double` as it was released, and the solution at another place."""

    def change(each):
        at(each, "double")["source"] = STUB
        written(each)

    return cells(change)


def swap(each):
    one, other = at(each, "double"), at(each, "half")
    one["metadata"], other["metadata"] = other["metadata"], one["metadata"]


def rename(grade_id, new):
    return cells(lambda each: at(each, grade_id)["metadata"]["nbgrader"].update(grade_id=new))


def copy_behind(each, grade_id, source):
    cell = at(each, grade_id)
    each.insert(each.index(cell) + 1, {**cell, "source": source})


def version(minor):
    def change(content):
        content |= {"nbformat": 4, "nbformat_minor": minor}
        for cell in content["cells"]:
            if minor < 5:
                del cell["id"]

    return notebook(change)


def format_3(data):
    each = [{**cell, "input": cell["source"], "prompt_number": 1} for cell in json.loads(data)["cells"]]
    for cell in each:
        del cell["source"]
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": each}]}).encode()


def colab(content):
    content |= {"nbformat_minor": 0, "metadata": {"colab": {"provenance": []}, "accelerator": "GPU"}}
    for number, cell in enumerate(content["cells"]):
        del cell["id"]
        cell["metadata"] = {"id": f"x{number}", "outputId": "y", "executionInfo": {"status": "ok"}}
        cell["source"] = cell["source"].splitlines(keepends=True)


def vs_code(content):
    content |= {"nbformat_minor": 2, "metadata": {"language_info": {"name": "python"}, "orig_nbformat": 4}}
    for cell in content["cells"]:
        del cell["id"]
        cell["metadata"] = {"vscode": {"languageId": "python"}}


def deepnote(content):
    content["metadata"] = {"deepnote": {}, "deepnote_execution_queue": []}
    for cell in content["cells"]:
        cell["metadata"] = {"cell_id": cell.pop("id"), "deepnote_cell_type": cell["cell_type"]}


def outputs(*shown):
    return of("double", outputs=list(shown))


def display(mime, data):
    return {"output_type": "display_data", "metadata": {}, "data": {mime: data}}


def files(write):
    """What lies in the folder, with the right notebook under the names that `write` returns."""

    def written(folder, data):
        for name in write(folder) or ():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    return written


def place(make):
    """Something else in the place of the notebook."""
    return lambda folder, data: make(folder / FILE)


def instead(make):
    """Something else in the place of the folder."""

    def written(folder, data):
        folder.rmdir()
        make(folder, data)

    return written


def bind(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def linked_student(folder, data):
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.symlink_to("first")


def sparse(path):
    with path.open("wb") as file:
        file.truncate(rebuild.MAX_BYTES + 1)


def with_mode(mode):
    def write(folder, data):
        (folder / FILE).write_bytes(data)
        (folder / FILE).chmod(mode)

    return write


def plain(folder, data):
    (folder / FILE).write_bytes(data)


NESTED = {"a": 1}
for _ in range(300):
    NESTED = {"a": NESTED}
REPAIRED = "repaired"

FORMS = {
    # not JSON
    "empty": unusable(text(lambda data: b""), "not-json"),
    "white space": unusable(text(lambda data: b" \r\n\t\n"), "not-json"),
    "zero bytes": unusable(text(lambda data: b"\0" * 4096), "not-json"),
    "zero bytes behind it": unusable(text(lambda data: data + b"\0" * 100), "not-json"),
    "cut in its first cell": unusable(text(lambda data: data[:200]), "not-json"),
    "cut in half": unusable(text(lambda data: data[: len(data) // 2]), "not-json"),
    "cut before its last byte": unusable(text(lambda data: data.rstrip()[:-1]), "not-json"),
    "without its beginning": unusable(text(lambda data: data[100:]), "not-json"),
    "twice in one file": unusable(text(lambda data: data + data), "not-json"),
    "a merge that was not finished": unusable(text(
        lambda data: b"<<<<<<< HEAD\n" + data + b"\n=======\n" + data + b"\n>>>>>>> mine\n"), "not-json"),
    "a web page": unusable(text(lambda data: b"<!DOCTYPE html><title>Log in</title>"), "not-json"),
    "a script": unusable(text(lambda data: DOUBLE.encode()), "not-json"),
    "a PDF": unusable(text(lambda data: b"%PDF-1.4\n%\xe2\xe3\xcf\xd3"), "not-json"),
    "an archive": unusable(text(lambda data: b"PK\x03\x04\x14\0\0\0\x08\0"), "not-json"),
    "noise": unusable(text(lambda data: random.Random(0).randbytes(10_000)), "not-json"),
    "a comma too many": unusable(text(lambda data: data.rstrip()[:-1] + b",}"), "not-json"),
    "with a comment": unusable(text(lambda data: b"// mine\n" + data), "not-json"),
    "nested without end": unusable(text(lambda data: b"[" * 200_000), "not-json"),
    "nested without end in a cell": unusable(text(
        lambda data: data.replace(b'"metadata": {', b'"x": ' + b"[" * 5000 + b"]" * 5000 + b', "metadata": {', 1)),
        "not-json"),
    "a number without end": unusable(text(lambda data: b'{"nbformat": ' + b"9" * 100_000 + b"}"), "not-json"),
    # JSON, but no notebook
    "null": unusable(text(lambda data: b"null"), "not-a-notebook"),
    "a number": unusable(text(lambda data: b"4.5"), "not-a-notebook"),
    "a list": unusable(text(lambda data: b"[" + data + b"]"), "not-a-notebook"),
    "no cells": unusable(notebook(lambda content: content.pop("cells")), "not-a-notebook"),
    "cells as a dict": unusable(notebook(
        lambda content: content.update(cells=dict(enumerate(content["cells"])))), "not-a-notebook"),
    "an empty list of cells": unusable(cells(lambda each: each.clear()), "not-a-notebook"),
    "cells that are none": unusable(cells(lambda each: each.__setitem__(slice(None), [1, None, "x"])),
                                    "not-a-notebook"),
    "sheets without cells": unusable(text(lambda data: b'{"worksheets": [{}]}'), "not-a-notebook"),
    # encodings and lines
    "UTF-8 with a byte order mark": Form(text(lambda data: b"\xef\xbb\xbf" + data)),
    "UTF-16": Form(text(lambda data: data.decode().encode("utf-16"))),
    "UTF-16, big end first": Form(text(lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"))),
    "UTF-16 without a mark": Form(text(lambda data: data.decode().encode("utf-16-le"))),
    "UTF-32": Form(text(lambda data: data.decode().encode("utf-32"))),
    "latin-1": Form(text(lambda data: data.replace(b"return x + x", b"return x + x  # \xe9")), "repaired"),
    "cp932, in which a backslash is half a letter": unusable(text(
        lambda data: data.replace(b"return x + x", b"return x + x  # " + "ソ連".encode("cp932"))), "not-utf-8"),
    "Windows lines in the file": Form(text(lambda data: json.dumps(json.loads(data), indent=1).replace(
        "\n", "\r\n").encode())),
    "Windows lines in the cells": Form(text(lambda data: data.replace(b"\\n", b"\\r\\n"))),
    "old Macintosh lines in the cells": Form(text(lambda data: data.replace(b"\\n", b"\\r"))),
    # formats
    "format 3": Form(text(format_3)),
    **{f"format 4.{minor}": Form(version(minor)) for minor in range(6)},
    "format of the future": Form(notebook(lambda content: content.update(nbformat=99, cells_by_name={}))),
    "format as text": Form(notebook(lambda content: content.update(nbformat="four", nbformat_minor=None))),
    "nothing but cells": Form(notebook(lambda content: [content.pop(key) for key in list(content)
                                                        if key != "cells"])),
    # JSON that only some can read
    "numbers that are none": Form(text(
        lambda data: data.replace(b'"metadata": {', b'"x": [NaN, Infinity, -Infinity], "metadata": {'))),
    "keys that come twice": Form(text(lambda data: b'{"cells": 3, ' + data[1:])),
    "half of a character": Form(source(DOUBLE + "# \ud800")),
    "nested": Form(notebook(lambda content: content.update(metadata=NESTED))),
    # ids and grade_ids
    "ids all missing": Form(every(lambda cell: cell.pop("id"))),
    "ids all the same": Form(every(lambda cell: cell.update(id="double"))),
    "ids that are numbers": Form(every(lambda cell: cell.update(id=7))),
    "grade_id missing": Form(cells(lambda each: at(each, "double")["metadata"].clear())),
    "grade_id renamed": Form(rename("double", "my_double")),
    "grade_id of a check": Form(rename("double", "test_double"), REPAIRED),
    "grade_id empty": Form(rename("double", "")),
    "grade_id no text": Form(rename("double", ["double"])),
    "grade_ids exchanged": Form(cells(swap), REPAIRED),
    "grade_id twice, first try below": Form(cells(
        lambda each: each.insert(2, {**at(each, "double"), "source": "def double(x):\n    return x\n"})), REPAIRED),
    "grade_id twice, first try above": Form(cells(
        lambda each: copy_behind(each, "double", "def double(x):\n    return x\n")), REPAIRED, double=0),
    "every cell copied": Form(cells(lambda each: each.extend([dict(cell) for cell in each])), REPAIRED),
    # cells
    "checks deleted": Form(cells(lambda each: [each.remove(at(each, f"test_{i}")) for i in ("double", "half")])),
    "a solution deleted": Form(cells(lambda each: each.remove(at(each, "double"))), REPAIRED, double=0),
    "both solutions deleted": Form(cells(lambda each: [each.remove(at(each, i)) for i in ("double", "half")]),
                                   REPAIRED, double=0, half=0),
    "imports deleted": Form(cells(lambda each: each.remove(at(each, "imports")))),
    "one cell": Form(cells(lambda each: each.__setitem__(slice(None), [code(DOUBLE + HALF)])), REPAIRED),
    "upside down": Form(cells(lambda each: each.reverse())),
    "shuffled": Form(cells(random.Random(1).shuffle)),
    "solution in a cell of its own at the end": Form(
        stub_and(lambda each: each.append(code(DOUBLE))), REPAIRED),
    "solution in a cell of its own at the top": Form(
        stub_and(lambda each: each.insert(0, code(DOUBLE))), REPAIRED),
    "solution in its check": Form(
        stub_and(lambda each: at(each, "test_double").update(source=DOUBLE + "assert double(2) == 4")),
        REPAIRED),
    "solution in the imports": Form(
        stub_and(lambda each: at(each, "imports").update(source="import numpy as np\n" + DOUBLE)),
        REPAIRED),
    "solution in another item's cell": Form(
        stub_and(lambda each: at(each, "half").update(source=HALF + DOUBLE)), REPAIRED),
    "solution in a text": Form(
        stub_and(lambda each: each.append(code(DOUBLE, cell_type="markdown"))), double=0),
    "solution became a text": Form(of("double", cell_type="markdown", attachments={})),
    "solution became raw": Form(of("double", cell_type="raw")),
    "check became a text": Form(of("test_double", cell_type="markdown")),
    "imports became a text": Form(of("imports", cell_type="markdown")),
    "a type that there is not": Form(of("double", cell_type=["code"])),
    "three hundred cells more": Form(added(*[f"x = {i}" for i in range(300)]), REPAIRED),
    # opened elsewhere
    "all metadata lost": Form(every(lambda cell: cell["metadata"].clear())),
    "metadata that are none": Form(every(lambda cell: cell.update(metadata=None))),
    "as Colab writes it": Form(notebook(colab), REPAIRED),
    "as VS Code writes it": Form(notebook(vs_code), REPAIRED),
    "as Deepnote writes it": Form(notebook(deepnote), REPAIRED),
    "another kernel": Form(notebook(lambda content: content["metadata"].update(
        kernelspec={"name": "ir", "language": "R", "display_name": "R"}))),
    "no kernel": Form(notebook(lambda content: content["metadata"].clear())),
    # sources
    "source in lines": Form(every(lambda cell: cell.update(source=cell["source"].splitlines(keepends=True)))),
    "source a number": Form(source(7), double=0),
    "source null": Form(source(None), double=0),
    "source a dict": Form(source({"0": DOUBLE}), double=0),
    "source missing": Form(cells(lambda each: at(each, "double").pop("source")), double=0),
    "source empty": Form(source(" \n"), double=0),
    "source of a million": Form(source(DOUBLE + "#" * (rebuild.MAX_SOURCE - len(DOUBLE)))),
    "source of two million": Form(source(f"x = '{'x' * 2_000_000}'\n{DOUBLE}"), REPAIRED, double=0),
    "a hundred thousand brackets": Form(source("(" * 100_000), double=0),
    "a zero byte in a cell": Form(source(DOUBLE + "\0"), double=0),
    "syntax error": Form(source("def double(x)\n    return x + x\n"), double=0),
    "syntax error in a cell of its own": Form(added("def helper(:")),
    "tabs": Form(source("def double(x):\n\ty = x\n\treturn y + y\n")),
    "tabs among blanks": Form(source("def double(x):\n    y = x\n\treturn y + y\n"), double=0),
    "letters from everywhere": Form(source(
        "def größe_二(x):\n    'π ≠ 🐍'\n    return x + x\ndef double(x):\n    return größe_二(x)\n")),
    "quotes from a word processor": Form(source("def double(x):\n    “twice”\n    return x + x\n"), double=0),
    # what cells do
    "asks for input": Form(added("name = input('Your name? ')")),
    "asks for input behind the solution": Form(source(DOUBLE + "double(float(input()))\n")),
    "asks for input in the solution": Form(source("def double(x):\n    return x * int(input())\n"), double=0),
    "%timeit": Form(source(DOUBLE + "%timeit -n1 -r1 double(2)\n")),
    "%%time": Form(source("%%time\n" + DOUBLE)),
    "%%timeit, which defines nothing": Form(source("%%timeit -n1 -r1\n" + DOUBLE), double=0),
    "%%bash": Form(added("%%bash\nexit 3")),
    "!pip": Form(source("!pip install numpy\n" + DOUBLE)),
    "%pip, %cd, %matplotlib": Form(added("%pip install x", "%cd /", "%matplotlib inline\n%config x")),
    "a magic that there is not": Form(added("%%no_such_magic\nx", "%no_such_magic")),
    "help": Form(source(DOUBLE + "double?\n")),
    "await": Form(source("import asyncio\nawait asyncio.sleep(0)\n" + DOUBLE)),
    "exit": Form(added("exit()", "quit()", "raise SystemExit")),
    "interrupts itself": Form(added("raise KeyboardInterrupt", "import os\nos._exit(0)")),
    "prints a hundred megabytes": Form(added("print('x' * 10**8)")),
    # outputs and attachments
    "more than a hundred megabytes": unusable(place(sparse), "too-large"),
    "a large image": Form(outputs(display("image/png", base64.b64encode(bytes(4 * 2**20)).decode()))),
    "a widget": Form(notebook(lambda content: content["metadata"].update(
        widgets={"application/vnd.jupyter.widget-state+json": {"state": {"x": [1] * 1000}}}))),
    "an attachment": Form(of("double_text", attachments={"a.png": {"image/png": "iVBORw0KGgo="}})),
    "outputs that are none": Form(of("double", outputs={"output_type": 3}, execution_count="x")),
    "outputs with a score": Form(of("test_double", outputs=[display("text/plain", "1000")])),
    # names and places
    "renamed": Form(files(lambda folder: ["my homework.ipynb"]), REPAIRED),
    "renamed by a browser": Form(files(lambda folder: [f"{NAME} (1).ipynb"]), REPAIRED),
    "named with letters from everywhere": Form(files(lambda folder: ["Übung – 多头.ipynb"]), REPAIRED),
    "named .ipynb.txt": Form(files(lambda folder: [f"{FILE}.txt"]), REPAIRED),
    "named in capitals": Form(files(lambda folder: [FILE.upper()]), REPAIRED),
    "another notebook beside it": Form(files(lambda folder: [FILE, "scratch.ipynb"])),
    "two versions": Form(files(lambda folder: [FILE, f"{NAME} (1).ipynb"]), REPAIRED),
    "two versions, both renamed": unusable(files(lambda folder: [f"{NAME} (1).ipynb", f"{NAME} (2).ipynb"]),
                                           "missing"),
    "with checkpoints": Form(files(lambda folder: [FILE, f".ipynb_checkpoints/{NAME}-checkpoint.ipynb"])),
    "nothing but checkpoints": unusable(files(lambda folder: [f".ipynb_checkpoints/{FILE}"]), "missing"),
    "in a folder of the folder": Form(files(lambda folder: [f"{NAME}/{FILE}", "__MACOSX/._x.ipynb"]), REPAIRED),
    "in two folders of the folder": unusable(files(lambda folder: [f"a/{FILE}", f"b/{FILE}"]), "missing"),
    "beside the folder's place": Form(instead(lambda folder, data: (folder.parent / FILE).write_bytes(data)),
                                      REPAIRED),
    "an empty folder": unusable(files(lambda folder: None), "missing"),
    "a script alone": unusable(files(lambda folder: [f"{NAME}.py"]), "missing"),
    "a file in the place of the folder": unusable(instead(lambda folder, data: folder.write_bytes(data)),
                                                     "missing"),
    # what is no file
    "a folder in the place of the notebook": unusable(place(Path.mkdir), "not-a-file"),
    "a pipe": unusable(place(os.mkfifo), "not-a-file"),
    "a socket": unusable(place(bind), "not-a-file"),
    "a link to a device": unusable(place(lambda path: path.symlink_to("/dev/zero")), "not-a-file"),
    "a link to a neighbour's notebook": unusable(
        place(lambda path: path.symlink_to(f"../../first/{NAME}/{FILE}")), "not-a-file"),
    "a link to itself": unusable(place(lambda path: path.symlink_to(FILE)), "not-a-file"),
    "a link to a neighbour's folder": unusable(
        instead(lambda folder, data: folder.symlink_to(f"../first/{NAME}")), "not-a-file"),
    "a link to nowhere for a folder": unusable(
        instead(lambda folder, data: folder.symlink_to("nowhere")), "not-a-file"),
    "a link to a neighbour": unusable(linked_student, "not-a-file"),
    "may be read only": Form(with_mode(0o444)),
    "may not be read": Form(with_mode(0)) if MAY_READ_ALL else unusable(with_mode(0), "unreadable"),
    # ids of students
    **{f"id {student[:20]!r}": Form(plain, student=student)
       for student in ("a.b", "ü ñ", "p+q", "[x]*", "-rf", "--help", "=1+1", " blank ", "a'b\"c", "a,b;c",
                       "{{7*7}}", "$(id)", "<b>", "李雷", LONG)},
}  # fmt: skip


def right(folder):
    """The notebook in a folder, with each source as one text."""
    content = json.loads((folder / FILE).read_bytes())
    for cell in content["cells"]:
        cell["source"] = "".join(cell["source"])
    return json.dumps(content).encode()
