"""Plain asserts as hidden tests: nbgrader notebooks as people have them, graded with as much trust as they allow.

A test cell runs in one of two places. Which one is decided before any hand-in is read, and only by the solutions:

* *Apart*, in the grader's process. The names that students define stand for the student's: a function is a stand-in
  whose calls carry data to the student's process and back, anything else is fetched from there as data. What the
  notebook gives is the grader's own. So nothing that a student's code does to asserts, `__eq__`, modules or the
  kernel reaches the test.
* *In the student's process*, like nbgrader, where the test cannot run apart: it uses a class or a table, looks at
  more of a function than what it returns, reads what was printed, … There a student's code can forge a pass, and
  read the test. Records say so (`PartRecord.in_process`).

A test runs apart if the solutions pass it there, with everything that one process would have shared taken away, and
if no value in it is something else than data.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import functools
import io
import random
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mha_grader.course.assignment import Assignment, CourseError, beside
from mha_grader.course.cells import Cell, assigned, python_of
from mha_grader.grading.plain_calls import Call, changing, is_changed, refuse_empty
from mha_grader.sandbox import wire
from mha_grader.testing.errors import CallError, Mismatch
from mha_grader.testing.parts import Part
from mha_grader.testing.proxies import Perform, Recorder, local

# Through these, tests and functions reach each other beside calls.
SHARED = frozenset({
    "builtins", "ctypes", "decimal", "gc", "importlib", "inspect", "io", "locale", "logging", "matplotlib", "os",
    "pathlib", "shutil", "subprocess", "sys", "tempfile", "threading", "warnings",
})  # fmt: skip
SHARED_NAMES = frozenset({
    "__import__", "assertLogs", "assertWarns", "assert_warns", "eval", "exec", "get_ipython", "globals", "id",
    "input", "locals", "mock", "open", "patch", "redirect_stdout", "setattr", "vars", "warns",
})  # fmt: skip
LONG = 14_000  # bits of an integer: JSON does not read many more
SILENT = (StopIteration, StopAsyncIteration)  # would end a loop of the test, and not the test


@dataclass(frozen=True)
class Test:
    """A test cell, and what is known of it before any hand-in is read."""

    __test__ = False  # for pytest: it is not a test

    id: str
    item: str
    points: float
    source: str
    given: str  # what it needs of the cells before it, beside what students define
    definitions: str  # of these, what stands in test cells: a student's process has not run those
    functions: tuple[str, ...]  # that students define
    values: tuple[str, ...]  # what else they define
    apart: bool
    failure: str = ""  # why the solutions fail it, if they do
    calls: tuple[Call, ...] = ()  # that it makes of the solutions, if it runs apart


def tests_of(assignment: Assignment) -> Mapping[str, Test]:
    """The tests of an assignment by item. The solutions are executed, once, in this process: they are trusted."""
    return _tests_of(assignment.cells, assignment.files)


def failures(assignment: Assignment) -> list[str]:
    """What is wrong with tests that the solutions fail."""
    return [f"{test.id}: {test.failure}" for test in tests_of(assignment).values() if test.failure]


@functools.lru_cache(maxsize=8)
def _tests_of(cells: tuple[Cell, ...], files: Path) -> Mapping[str, Test]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    statements: list[tuple[Cell, ast.stmt]] = []  # of given and test cells
    own: set[str] = set()  # names that students define
    found = {}
    with _in_folder(files), contextlib.redirect_stdout(io.StringIO()):
        for cell in cells:
            if cell.kind not in ("given", "solution", "test"):
                continue
            body = ast.parse(python_of(cell.source)).body
            if cell.kind == "test" and cell.item is not None:
                found[cell.item] = _looked_at(cell, body, statements, own, namespace, files)
            else:
                _execute(cell, namespace)
            for statement in body:
                if cell.kind == "solution" and not isinstance(statement, ast.Import):
                    own |= _touched(statement, namespace)
                elif cell.kind != "test" or isinstance(statement, _DEFINITIONS):
                    own -= assigned(statement)
                    statements.append((cell, statement))
    return found


def _execute(cell: Cell, namespace: dict[str, Any]) -> None:
    try:
        exec(compile(python_of(cell.source), f"<{cell.id}>", "exec"), namespace)
    except (Exception, SystemExit) as error:
        raise CourseError(f"{cell.id} of the solutions raised {type(error).__name__}: {error}") from error


_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)


def _touched(statement: ast.stmt, namespace: Mapping[str, Any]) -> set[str]:
    """Names that a solution's statement defines, or whose values it may change."""
    touched = assigned(statement)
    for node in ast.walk(statement):
        if isinstance(node, ast.Global):
            touched |= set(node.names)
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        touched |= {name for name in _names(statement) if _is_data(namespace.get(name))}
    return touched


def _names(*nodes: ast.AST) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def _is_data(value: Any) -> bool:
    return value is not None and not callable(value) and not isinstance(value, types.ModuleType)


def _looked_at(
    cell: Cell,
    body: list[ast.stmt],
    before: list[tuple[Cell, ast.stmt]],
    own: set[str],
    namespace: dict[str, Any],
    files: Path,
) -> Test:
    """Run a test on the solutions, in both places; the namespace is theirs, and the test may change it."""
    needed = _needed(body, before, own, namespace)
    mine = own & _names(*body, *(statement for _, statement in needed))
    functions = tuple(sorted(name for name in mine if callable(namespace.get(name))))
    test = Test(
        id=cell.id,
        item=cell.item or cell.id,
        points=cell.points,
        source=python_of(cell.source),
        given="\n".join(ast.unparse(statement) for _, statement in needed),
        definitions="\n".join(ast.unparse(each) for place, each in needed if place.kind == "test"),
        functions=functions,
        values=tuple(sorted(mine - set(functions))),
        apart=False,
    )
    calls = None
    if not cell.in_process and _may_run_apart(test, body, needed, namespace):
        calls = _calls_apart(test, namespace, files)
    apart = calls is not None
    failure = ""
    try:
        exec(compile(test.source, f"<{cell.id}>", "exec"), namespace)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return dataclasses.replace(test, apart=apart, failure="" if apart else failure, calls=calls or ())


def _needed(
    body: list[ast.stmt], before: list[tuple[Cell, ast.stmt]], own: set[str], namespace: Mapping[str, Any]
) -> list[tuple[Cell, ast.stmt]]:
    """The statements before a test that make, or may change, what it uses and students do not define."""
    names, needed = _names(*body), []
    for cell, statement in reversed(before):
        made = assigned(statement)
        if not isinstance(statement, _DEFINITIONS):
            made |= {name for name in _names(statement) if _is_data(namespace.get(name))}
        if made & (names - own):
            names |= _names(statement)
            needed.append((cell, statement))
    return needed[::-1]


def _may_run_apart(
    test: Test, body: list[ast.stmt], needed: list[tuple[Cell, ast.stmt]], namespace: Mapping[str, Any]
) -> bool:
    """Whether the text of a test says nothing that makes sense only where the functions are."""
    for node in (
        node for statement in (*body, *(each for _, each in needed)) for node in ast.walk(statement)
    ):
        match node:
            case ast.Name(id=name, ctx=context):
                value = namespace.get(name)
                shared = isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in SHARED
                changed = name in test.functions and not isinstance(context, ast.Load)
                if shared or changed or name in SHARED_NAMES:
                    return False
            case ast.Attribute(value=ast.Name(id=name)) if name in test.functions:
                return False
            case ast.Attribute(attr=name, ctx=context):
                if name in SHARED_NAMES or not isinstance(context, ast.Load):
                    return False
            case ast.Import(names=names):
                if {alias.name.partition(".")[0] for alias in names} & SHARED:
                    return False
            case ast.ImportFrom(module=module, names=names):
                if {str(module).partition(".")[0]} & SHARED or {each.name for each in names} & SHARED_NAMES:
                    return False
            case ast.Compare(ops=operators, comparators=others):
                for operator, other in zip(operators, others, strict=True):
                    if isinstance(operator, ast.Is | ast.IsNot) and not isinstance(other, ast.Constant):
                        return False
    if any(isinstance(namespace.get(name), type) for name in test.functions):
        return False
    return bool(test.functions or test.values)  # else it would say nothing of the student's


def _calls_apart(test: Test, namespace: Mapping[str, Any], files: Path) -> tuple[Call, ...] | None:
    """The calls of a test that the solutions pass where only data goes between the two; None if they do not."""
    perform = local(
        **{name: namespace[name] for name in (*test.functions, *test.values) if name in namespace}
    )
    recorder = Recorder(_with_numbers_of_its_own(perform))
    try:
        calls = _run_once(test, recorder, files)
    except Exception:
        return None
    return None if calls.not_data else tuple(calls.made)


def _with_numbers_of_its_own(perform: Perform) -> Perform:
    """Carry requests out with other states of the global random generators than the test's, as a process has."""

    def separate(request: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
        torch = sys.modules.get("torch")
        kept = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
        random.seed()
        np.random.seed()
        if torch:
            torch.seed()
        try:
            return perform(request)
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            if torch:
                torch.set_rng_state(kept[2])

    return separate


@contextlib.contextmanager
def _in_folder(files: Path) -> Iterator[None]:
    """As in a notebook: the files beside it can be imported and read."""
    with beside(files.resolve()), contextlib.chdir(files):
        yield


def part_of(assignment: Assignment, item: str, recorder: Recorder | None = None) -> Part:
    """The part that a test cell is; without a recorder it cannot be run."""
    test = tests_of(assignment)[item]

    def run(rng: np.random.Generator) -> None:
        assert recorder is not None
        if test.apart:
            run_apart(test, recorder, assignment.files)
        else:
            judge_in_process(test, recorder)

    proves = f"The checks of the cell {test.id} pass."
    return Part(test.id, test.points, (), proves, None, run, in_process=not test.apart)


# --- in the student's process -----------------------------------------------------------------------------


def judge_in_process(test: Test, recorder: Recorder) -> None:
    """Run a test where the student's code is. No word that comes from there later must reach a student.

    Nothing but the class of a built-in error is taken over: the rest could be the test's own text.

    Raises:
        Mismatch: if it does not pass.
        CallError: if it does not end.
    """
    source = f"{test.definitions}\n{test.source}"
    try:
        recorder.request("exec", test.id, label=test.id, source=source)
    except CallError as error:
        if error.kind != "error":
            raise
        known = [name for name in error.type_names if isinstance(getattr(builtins, name, None), type)]
        raise Mismatch(f"the test of this cell ended with {(known or ['an error'])[0]}") from None


# --- apart ------------------------------------------------------------------------------------------------


@dataclass
class Calls:
    """What a test has of the student's process."""

    recorder: Recorder
    namespace: dict[str, Any]
    test: Test
    writes: bool  # whether what functions do to their arguments is done to the test's
    ended: Exception | None = None  # the first call that gave neither a result nor an error of the code
    not_data: set[str] = field(default_factory=set)  # types of values that could not go over
    made: list[Call] = field(default_factory=list)  # those that gave a result

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a student's function; what it does to its arguments is done to these, see `run_apart`.

        Raises:
            Exception: of the class that it raised, as far as the test can know it.
        """
        given = _through_wire([list(args), kwargs])
        self._note(given)
        try:
            value, _ = self.recorder.request(
                "call", name, method=None, args=list(args), kwargs=kwargs, keep=None, whole=True
            )
        except CallError as error:
            if error.kind != "error":
                self.ended = self.ended or error
            raise _mirrored(error, self.namespace) from None
        except Exception as error:  # no time is left, or the machine fails
            self.ended = self.ended or error
            raise
        result, after, by_name = _three(value)
        if len(after) != len(args) or by_name.keys() != kwargs.keys():
            raise CallError("died")
        pairs = [*zip(args, after, strict=True), *((kwargs[key], by_name[key]) for key in kwargs)]
        changes = any(is_changed(*pair) for pair in pairs)
        if self.writes or name in changing(self.test.calls):
            for pair in pairs:
                _write_back(*pair)
        self._note(result)
        self.made.append(Call(name, given, result, changes))
        return _scalars(result)

    def fetch(self, name: str) -> Any:
        """The value of a name that a student has defined.

        Raises:
            CallError: if there is none.
        """
        value, _ = self.recorder.request("get", name)
        self._note(value)
        return _scalars(value)

    def _note(self, value: Any) -> None:
        if isinstance(value, wire.Opaque):
            self.not_data.add(value.type_name)
        elif isinstance(value, list | tuple):
            for each in value:
                self._note(each)
        elif isinstance(value, dict):
            self._note([*value, *value.values()])
        elif isinstance(value, int) and value.bit_length() > LONG:
            self.not_data.add("a very long integer")


class StudentsFunction:
    """Stands for a function that lives in the student's process, and can do nothing but be called."""

    def __init__(self, calls: Calls, name: str):
        """Bind the name; nothing is called yet."""
        self._calls, self._name = calls, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """See `Calls.call`."""
        return self._calls.call(self._name, args, kwargs)


def run_apart(test: Test, recorder: Recorder, files: Path) -> None:
    """Run a test in this process.

    `np.allclose` and loops over pairs hold for something empty, and for a result that is compared with an argument
    that the function has changed. So nothing may be empty where the solution's result for the same arguments is
    not, and where only a student's function changes its arguments, the test must pass without these changes, too.

    Raises:
        Exception: what the test ends with. A call that gave no result counts, even if the test goes on after it.
    """
    calls = _run_once(test, recorder, files)
    refuse_empty(calls.made, test.calls)
    if names := sorted(changing(calls.made) - changing(test.calls)):
        try:
            calls = _run_once(test, recorder, files, writes=False)
        except Mismatch:
            raise Mismatch(
                f"{names[0]} changes its arguments, and the checks pass only because of that"
            ) from None
        refuse_empty(calls.made, test.calls)


def _run_once(test: Test, recorder: Recorder, files: Path, *, writes: bool = True) -> Calls:
    namespace: dict[str, Any] = {"__name__": "__main__", "print": _print, "display": _print}
    calls = Calls(recorder, namespace, test, writes)
    for name in test.functions:
        value = calls.fetch(name)
        if not isinstance(value, wire.Opaque):
            raise Mismatch(f"{name} should be a function")
        namespace[name] = StudentsFunction(calls, name)
    calls.not_data.clear()  # functions are none, as they should be
    for name in test.values:
        namespace[name] = calls.fetch(name)
    try:
        with _in_folder(files):
            exec(compile(test.given, f"<before {test.id}>", "exec"), namespace)
            exec(compile(test.source, f"<{test.id}>", "exec"), namespace)
    except (Mismatch, CallError):
        raise
    except Exception as error:
        if calls.ended is None and not hasattr(error, "call"):
            raise Mismatch(_in_words(test, error, calls)) from error
        raise calls.ended or error.call from None  # type: ignore[attr-defined]
    if calls.ended is not None:
        raise calls.ended
    return calls


def _in_words(test: Test, error: Exception, calls: Calls) -> str:
    """What a student may read of a failed check: words that the test's author wrote for it, and no value."""
    texts = {node.value for node in ast.walk(ast.parse(test.source)) if isinstance(node, ast.Constant)}
    words = f"the test of this cell ended with {type(error).__name__}"
    if isinstance(error, AssertionError):
        words = str(error) if str(error) in texts else "a check of this cell failed"
    if calls.not_data:
        kinds = ", ".join(sorted(calls.not_data))
        words += f". The test cannot receive a value of type {kinds}: use lists, dicts or arrays"
    return words


def _print(*values: Any, file: Any = None, **options: Any) -> None:
    """Print to a file, and else nowhere."""
    if file is not None:
        print(*values, file=file, **options)


def _mirrored(error: CallError, namespace: Mapping[str, Any]) -> Exception:
    """An exception of the class that was raised elsewhere, or of the nearest that is known here."""
    made: Exception = RuntimeError(error.text)
    for name in error.type_names:
        kind = namespace.get(name, getattr(builtins, name, None))
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, SILENT):
            with contextlib.suppress(Exception):
                made = kind(error.text)
                break
    made.call = error  # type: ignore[attr-defined]
    return made


def _three(value: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    """The result and the arguments in a reply, which may hold anything."""
    match value:
        case {"result": result, "args": list(args), "kwargs": dict(kwargs)}:
            return result, args, kwargs
    raise CallError("died")


def _through_wire(value: Any) -> Any:
    buffers: list[bytes] = []
    tree = wire.encode(value, buffers)
    return wire.decode(tree, memoryview(b"".join(buffers)))


def _write_back(given: Any, now: Any) -> None:
    """Make an argument what the call has made of it."""
    if not is_changed(given, now):
        return
    if isinstance(given, list):
        given[:] = _scalars(now)
    elif isinstance(given, dict):
        given.clear()
        given.update(_scalars(now))
    elif isinstance(given, np.ndarray) and given.shape == now.shape:
        given[...] = now


def _scalars(value: Any) -> Any:
    """The value with arrays without axes as NumPy's scalars, which they have been."""
    if isinstance(value, np.ndarray) and value.shape == ():
        return value[()]
    if isinstance(value, list | tuple):
        return type(value)(map(_scalars, value))
    if isinstance(value, dict):
        return {key: _scalars(each) for key, each in value.items()}
    return value
