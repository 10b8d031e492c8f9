"""What a hidden test can do with a student's code: call it, make objects of it, load parameters, take gradients.

This file is bound into the sandbox, where the worker carries the operations out; the grader uses the same
code on functions of its own (the reference, the wrong variants), so that both sides mean the same. It imports
only the standard library; torch is used if the tested code has loaded it.

A request is a dict of plain data:
    op          `get`, `call`, `load`, `gradients` or `check`
    target      name of a variable, the `Handle` of a kept object, or the dotted path of something in an installed
                package, for example `torch.nn.MultiheadAttention`
    method      name of a method of the target, or None to call the target itself
    args        list of positional arguments, kwargs  dict of the others; a `Handle` stands for its object
    keep        number under which the result is kept as an object, instead of being sent back
    after       whether the reply should hold the arguments that the call changed in place
    whole       whether the value should be a dict of the result and all arguments as they are after the call
    candidate   for `check`: what the target, a checker, is called with
    parameters  for `load`: value by dotted path, for example `out_proj.weight`; of a `call` whose result is kept:
                what is loaded into the module that it made, which is then put into eval mode: the value says
                whether that went well; None for nothing
    wrt         for `gradients`: positions of arguments, and dotted paths of parameters of the target
    cotangent   for `gradients`: what the (first) output is multiplied with before it is summed
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

ERRORS = {  # of what a checker calls: the same, whatever it calls
    "error": "the function that is checked raised an error",
    "outside": "the check called the function with what its contract does not allow",
}


class Missing(Exception):  # noqa: N818 - it is a verdict
    """The tested name is not defined."""


class Operations:
    """Carries out requests on one namespace."""

    def __init__(self, namespace: Mapping[str, Any], is_same: Callable[[Any, Any], bool]):
        """Act on the names in `namespace`; `is_same` tells whether two plain values are equal in every bit."""
        self.namespace, self.is_same = namespace, is_same
        self.objects: dict[int, Any] = {}
        self.candidate: Callable[[Any], Callable[..., Any]] | None = None  # makes what a checker is given

    def perform(self, request: dict[str, Any], pristine: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; returns the reply.

        Args:
            request: see the module's docstring. Its arguments go to the tested code, which may change them.
            pristine: its `args` and `kwargs` once more, to compare with.

        Raises:
            BaseException: whatever the tested code raises.
        """
        try:
            target = self._target(request["target"])
        except Missing:
            return {"status": "missing"}
        if request["op"] == "get":
            return {"status": "ok", "value": target}
        if request["op"] == "load":
            load(target, request["parameters"])
            return {"status": "ok", "value": None}
        if request["op"] == "check":
            assert self.candidate is not None
            return {"status": "ok", "value": judge(target, self.candidate(request.get("candidate")))}
        function = target if request["method"] is None else getattr(target, request["method"])
        args, kwargs = request["args"], request["kwargs"]
        given = [self._given(value) for value in args]
        if request["op"] == "gradients":
            return {"status": "ok", "value": gradients(target, function, {**request, "args": given})}
        value = function(*given, **{key: self._given(value) for key, value in kwargs.items()})
        if request["keep"] is not None:
            self.objects[request["keep"]] = value
            parameters = request.get("parameters")
            value = None if parameters is None else fill(value, parameters)
        if request.get("whole"):
            value = {"result": value, "args": args, "kwargs": kwargs}
        pairs = [(str(i), new, old) for i, (new, old) in enumerate(zip(args, pristine["args"], strict=True))]
        pairs += [(key, kwargs[key], old) for key, old in pristine["kwargs"].items()]
        changed = [key for key, new, old in pairs if not self.is_same(new, old)]
        reply = {"status": "ok", "value": value, "changed": changed}
        if request.get("after"):
            after = {str(i): value for i, value in enumerate(args)} | kwargs
            reply["after"] = {key: after[key] for key in changed}
        return reply

    def _target(self, target: Any) -> Any:
        if not isinstance(target, str):
            return self.objects[target.number]
        if "." in target:
            package, path = target.split(".", 1)
            return find(importlib.import_module(package), path)
        if target not in self.namespace:
            raise Missing
        return self.namespace[target]

    def _given(self, value: Any) -> Any:
        """What the tested code gets for an argument."""
        return self.objects[value.number] if type(value).__name__ == "Handle" else value


def find(target: Any, path: str) -> Any:
    """The attribute at a dotted path."""
    return functools.reduce(getattr, path.split("."), target)


def load(target: Any, parameters: Mapping[str, Any]) -> None:
    """Copy values into the parameters of a module, in the parameters' own dtype.

    Raises:
        AttributeError: if there is no such parameter.
        ValueError: if it has another shape.
    """
    import torch

    with torch.no_grad():
        for path, value in parameters.items():
            parameter = find(target, path)
            if tuple(parameter.shape) != tuple(value.shape):
                found, wanted = tuple(parameter.shape), tuple(value.shape)
                raise ValueError(f"{path} has shape {found}; it should have shape {wanted}")
            parameter.copy_(torch.as_tensor(value))


def fill(module: Any, parameters: Mapping[str, Any]) -> bool:
    """Copy values into the parameters of a module and put it into eval mode; whether that went well."""
    try:
        load(module, parameters)
        module.eval()
    except Exception:  # who asked tries it step by step, and so sees what is wrong
        return False
    return True


def gradients(target: Any, function: Callable[..., Any], request: Mapping[str, Any]) -> list[Any]:
    """Gradients of sum(cotangent · output) for the arguments and parameters named in `wrt`; None if unused."""
    import torch

    args = list(request["args"])
    wanted = []
    for place in request["wrt"]:
        if isinstance(place, int):
            leaf = args[place].clone().requires_grad_(True)
            wanted.append(leaf)
            args[place] = leaf.clone()  # as in a model, whose layers are given what others have computed
        else:
            wanted.append(find(target, place))
    output = function(*args, **request["kwargs"])
    if isinstance(output, tuple | list):
        output = output[0]
    total = (output * request["cotangent"]).sum()
    return list(torch.autograd.grad(total, wanted, allow_unused=True))


def judge(check: Callable[..., Any], candidate: Callable[..., Any]) -> dict[str, Any]:
    """Whether a checker accepts a candidate: it does unless it raises."""
    try:
        returned = check(candidate)
    except Exception as error:
        why = failure(error)
        return {"accepted": False, "error": why.get("types", [])[:1], "text": why.get("text", "")[:200]}
    return {"accepted": True, "returned": returned is not None}


def candidate(ask: Callable[[list[Any], dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
    """What a checker is given: all candidates are this one function, and only what they do tells them apart.

    Args:
        ask: answers a call, see `candidates.told`.
    """

    def candidate(*args: Any, **kwargs: Any) -> Any:
        answer = ask(list(args), kwargs)
        if answer["status"] in ERRORS:
            raise ValueError(ERRORS[answer["status"]])
        if answer["status"] != "ok":
            raise RuntimeError("the function that is checked gave no result")
        for key, value in answer["after"].items():  # it changed its arguments in place: so it seems here
            target = kwargs[key] if key in kwargs else args[int(key)]
            if hasattr(target, "shape"):
                target[...] = value
        return answer["value"]

    return candidate


def failure(error: BaseException) -> dict[str, Any]:
    """The reply for an error, with the place in the student's own cells."""
    names = [base.__name__ for base in type(error).__mro__ if base is not object]
    text = str(error)[:2000]
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return {"status": "memory"}
    cell, line = "", None
    if isinstance(error, SyntaxError):
        cell, line, text = str(error.filename), error.lineno, str(error.msg)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith("<cell "):
            cell, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    cell = cell.removeprefix("<cell ").removesuffix(">")
    return {"status": "error", "types": names, "text": text, "cell": cell, "line": line}
