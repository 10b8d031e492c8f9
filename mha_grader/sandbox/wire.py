"""Plain data over a socket, between the grader and a student's process.

Nothing here can run code at the other end: a frame is JSON and raw bytes, never pickle. What arrives from a
student's process is checked against hard caps before anything of its size is allocated. This file is also
bound into the sandbox, so it imports only the standard library and NumPy; torch is used if it is there.

A frame is: length of the header (4 bytes), length of the payload (8 bytes), header (JSON), payload (the bytes
of its arrays, one after the other).
"""

from __future__ import annotations

import json
import math
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_HEADER = 4 * 2**20
MAX_PAYLOAD = 64 * 2**20
MAX_NODES = 100_000  # values in one frame: each costs memory, and time to copy
MAX_KEYS = 5_000  # keys of dicts in one frame: a dict of chosen numbers is slow to build
MAX_DEPTH = 16
MAX_NAME = 80

SCALARS = frozenset({type(None), bool, int, float})  # in JSON as they are here
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMPY_DTYPES = frozenset([*INTEGERS, "bool", "float16", "float32", "float64"])
NAMES = {np.dtype(name): name for name in NUMPY_DTYPES}  # NumPy works a dtype's name out anew each time
AS_SENT = {name: dtype.newbyteorder("<") for dtype, name in NAMES.items()}
# NumPy has no bfloat16: such a tensor travels as its bits.
TORCH_BITS = {"bfloat16": "int16"}
TENSORS = NUMPY_DTYPES | TORCH_BITS.keys()


class ProtocolError(Exception):
    """The other end sent something that is not a frame, or one beyond the caps."""


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that is not plain data, for example a generator: only its type's name travels."""

    type_name: str


@dataclass(frozen=True)
class Handle:
    """Names an object that stays in the student's process, for example a module."""

    number: int


def encode(value: Any, buffers: list[bytes], depth: int = 0) -> Any:
    """The value as JSON-ready data; the bytes of its arrays are appended to `buffers`.

    Anything that is not plain data becomes an `Opaque`. Subclasses are reduced to what they hold.
    """
    if depth > MAX_DEPTH:
        return {"o": "data nested too deeply"}
    kind = type(value)
    if value is None or kind in (bool, str, int, float):
        return value
    if isinstance(value, list | tuple):  # a named tuple as well
        items = [encode(item, buffers, depth + 1) for item in value]
        return items if isinstance(value, list) else {"t": items}
    if isinstance(value, dict):
        return {
            "d": [[encode(k, buffers, depth + 1), encode(v, buffers, depth + 1)] for k, v in value.items()]
        }
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), buffers, "a")
    if kind is Handle:
        return {"h": value.number}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _encode_tensor(torch, value, buffers)
    return {"o": kind.__name__[:MAX_NAME]}


def _encode_array(array: np.ndarray, buffers: list[bytes], tag: str, dtype: str | None = None) -> Any:
    name = NAMES.get(array.dtype) or array.dtype.name
    if name not in NUMPY_DTYPES:
        return {"o": f"array of dtype {name}"[:MAX_NAME]}
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(array.shape)
    buffers.append(array.tobytes())
    return {tag: [dtype or name, list(array.shape)]}


def _encode_tensor(torch: Any, tensor: Any, buffers: list[bytes]) -> Any:
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if name in TORCH_BITS:
        return _encode_array(tensor.contiguous().view(torch.int16).numpy(), buffers, "T", name)
    return _encode_array(tensor.numpy(), buffers, "T")


def decode(tree: Any, payload: memoryview, load_handle: Callable[[int], Any] = Handle) -> Any:
    """The inverse of `encode`. Arrays are fresh and writable.

    Raises:
        ProtocolError: if the tree is not one that `encode` makes, or the payload does not fit it exactly.
    """
    position, nodes, keys = 0, 0, 0

    def take(dtype: Any, shape: Any) -> np.ndarray:
        nonlocal position
        as_sent = AS_SENT.get(dtype) if isinstance(dtype, str) else None
        if as_sent is None:
            raise ProtocolError("unknown dtype")
        sizes: list[Any] = shape if isinstance(shape, list) else [None]
        if len(sizes) > 32 or not all(type(size) is int and 0 <= size < 2**40 for size in sizes):
            raise ProtocolError("a shape is a list of sizes")
        size = math.prod(sizes) * as_sent.itemsize
        if position + size > len(payload):
            raise ProtocolError("an array is larger than the payload")
        chunk = payload[position : position + size]
        position += size
        array = np.frombuffer(chunk, as_sent).astype(as_sent.newbyteorder("="))
        try:
            return array.reshape(sizes)
        except ValueError as error:  # empty along one axis, and absurd along others
            raise ProtocolError("an array that cannot be") from error

    def visit(node: Any, depth: int) -> Any:
        nonlocal nodes, keys
        nodes += 1
        if nodes > MAX_NODES:
            raise ProtocolError("more values than the cap")
        if depth > MAX_DEPTH + 1:
            raise ProtocolError("data nested too deeply")
        kind = type(node)
        if kind is str:  # a lone surrogate can stand in JSON, and cannot be written anywhere
            return node if node.isascii() else node.encode("utf-8", "replace").decode("utf-8")
        if kind in SCALARS:
            return node
        if kind is list:
            return [visit(item, depth + 1) for item in node]
        if kind is not dict or len(node) != 1:
            raise ProtocolError("not a value")
        ((tag, body),) = node.items()
        if tag == "t" and isinstance(body, list):
            return tuple(visit(item, depth + 1) for item in body)
        if tag == "d" and isinstance(body, list):
            keys += len(body)
            if keys > MAX_KEYS:
                raise ProtocolError("more keys than the cap")
            return _dict([visit(pair, depth + 1) for pair in body])
        if tag == "a" and isinstance(body, list) and len(body) == 2:
            return take(*body)
        if tag == "T" and isinstance(body, list) and len(body) == 2 and isinstance(body[0], str):
            return _tensor(body[0], take(TORCH_BITS.get(body[0], body[0]), body[1]))
        if tag == "h" and type(body) is int:
            return load_handle(body)
        if tag == "o" and isinstance(body, str):
            return Opaque("".join(c if c.isprintable() else "?" for c in body[:MAX_NAME]))
        raise ProtocolError("not a value")

    value = visit(tree, 0)
    if position != len(payload):
        raise ProtocolError("the payload is larger than its arrays")
    return value


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except (TypeError, ValueError) as error:
        raise ProtocolError("not a dict") from error


def _tensor(dtype: str, array: np.ndarray) -> Any:
    try:
        import torch
    except ImportError as error:
        raise ProtocolError("a tensor, where PyTorch is not installed") from error
    try:
        tensor = torch.from_numpy(array)
    except TypeError as error:
        raise ProtocolError("a tensor of a dtype that there is not") from error
    return tensor.view(getattr(torch, dtype)) if dtype in TORCH_BITS else tensor


def arriving(value: Any, depth: int = 0) -> Any:
    """What would arrive of a value at the other end, for data that stays here: `decode` of what `encode` makes.

    Raises:
        ProtocolError: if a dict has keys that cannot be.
    """
    if depth > MAX_DEPTH:
        return Opaque("data nested too deeply")
    kind = type(value)
    if value is None or kind in (bool, int, float) or (kind is str and value.isascii()):
        return value
    if isinstance(value, list | tuple):
        items = [arriving(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        pairs = [(arriving(key, depth + 1), arriving(item, depth + 1)) for key, item in value.items()]
        return _dict(pairs)
    if kind is np.ndarray and value.dtype in NAMES:
        return value.copy()
    if kind is Handle:
        return value
    torch = sys.modules.get("torch")
    if torch is not None and kind is torch.Tensor and str(value.dtype).removeprefix("torch.") in TENSORS:
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    buffers: list[bytes] = []
    tree = encode(value, buffers, depth)
    return decode(tree, memoryview(b"".join(buffers)))


def same_bits(new: Any, old: Any) -> bool:
    """Whether two plain values are equal in every bit."""
    if type(new) is type(old) is np.ndarray:
        return new.dtype == old.dtype and new.shape == old.shape and new.tobytes() == old.tobytes()
    first: list[bytes] = []
    second: list[bytes] = []
    return bool(encode(new, first) == encode(old, second) and first == second)


def send(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send one message: a dict of names and plain data."""
    buffers: list[bytes] = []
    tree = {name: encode(value, buffers) for name, value in message.items()}
    header = json.dumps(tree).encode()
    sizes = struct.pack(">IQ", len(header), sum(map(len, buffers)))
    channel.sendall(b"".join((sizes, header, *buffers)))


Frame = tuple[bytes, memoryview]  # header and payload


def read_frame(read: Callable[[int], bytes | bytearray]) -> Frame:
    """Read one frame by means of `read(size)`, which returns exactly that many bytes.

    Raises:
        ProtocolError: if its announced size is beyond the caps; nothing has been allocated then.
    """
    header_size, payload_size = struct.unpack(">IQ", read(12))
    if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
        raise ProtocolError("a frame is larger than the cap")
    rest = memoryview(read(header_size + payload_size))
    return bytes(rest[:header_size]), rest[header_size:]


def parse(frame: Frame, load_handle: Callable[[int], Any] = Handle) -> dict[str, Any]:
    """The message in a frame, whose payload is given up.

    Raises:
        ProtocolError: if the frame does not hold a message.
    """
    header, payload = frame
    try:
        tree = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a header is not JSON") from error
    if not isinstance(tree, dict) or len(tree) > MAX_KEYS:
        raise ProtocolError("a message is a dict with few keys")
    # One pass over all fields, so that together they must use up the payload.
    # The view is given up here: the functions in `decode` know each other, and so live on for a while.
    with payload as view:
        return dict(zip(tree, decode(list(tree.values()), view, load_handle), strict=True))
