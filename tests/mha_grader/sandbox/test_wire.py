"""What crosses between the processes is data, exact, and bounded."""

import json
import struct
import sys
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from mha_grader.sandbox import wire

dtypes = st.sampled_from(sorted(wire.NUMPY_DTYPES)).map(np.dtype)
arrays = dtypes.flatmap(lambda d: npst.arrays(d, npst.array_shapes(min_dims=0, max_dims=4, min_side=0)))
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | arrays
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def through(value):
    buffers = []
    tree = json.loads(json.dumps(wire.encode(value, buffers)))
    return wire.decode(tree, memoryview(b"".join(buffers)))


@pytest.fixture(params=[through, wire.arriving])
def arrive(request):
    """What arrives of a value: by the wire, and without it for data that stays in this process."""
    return request.param


def same(first, second):
    if isinstance(first, np.ndarray):
        return (
            isinstance(second, np.ndarray)
            and first.dtype == second.dtype
            and first.shape == second.shape
            and first.tobytes() == second.tobytes()
        )
    if type(first) is not type(second):
        return False
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    return first == second or (first != first and second != second)


@settings(deadline=None)
@given(values)
def test_data_arrives_as_it_was_sent(value):
    assert same(through(value), value)
    assert same(wire.arriving(value), value)


def test_layout_in_memory_does_not_matter(arrive):
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    assert np.array_equal(arrive(array), array)
    assert np.array_equal(arrive(np.asfortranarray(array)), array)
    assert np.array_equal(arrive(array.astype(">f8")), array)


def test_what_arrives_is_fresh_and_writable(arrive):
    array = arrive(np.zeros((2, 3)))
    array += 1
    assert array.flags.owndata or array.base is not None
    assert (array == 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool])
def test_tensors_keep_their_bits(arrive, dtype):
    tensor = torch.tensor([[0.1, -2.0, 0.0]], dtype=dtype).requires_grad_(dtype.is_floating_point)
    arrived = arrive(tensor)
    assert arrived.dtype == dtype
    assert torch.equal(arrived, tensor.detach())


class Liar(np.ndarray):
    """Says that it equals everything."""

    def __eq__(self, other):
        return True


def test_a_subclass_arrives_as_what_it_holds(arrive):
    arrived = arrive(np.ones(3).view(Liar))
    assert type(arrived) is np.ndarray
    assert arrive(np.float64(0.5)).shape == ()
    pair = namedtuple("Pair", "output weights")(1, [2])
    assert arrive(pair) == (1, [2])
    assert type(arrive(pair)) is tuple
    assert arrive(OrderedDict(a=1)) == {"a": 1}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ((i for i in ()), "generator"),
        (object(), "object"),
        (lambda: 0, "function"),
        (np.array([object()]), "array of dtype object"),
        (np.array([1j]), "array of dtype complex128"),
        (b"bytes", "bytes"),
        ({1, 2}, "set"),
    ],
)
def test_what_is_not_data_arrives_as_its_types_name(arrive, value, name):
    assert arrive(value) == wire.Opaque(name)


def test_endless_nesting_is_cut_off():
    nested = []
    nested.append(nested)
    text = json.dumps(wire.encode(nested, []))
    assert "nested too deeply" in text


def test_control_characters_do_not_come_in_with_a_name():
    name = wire.decode({"o": "a\x1b[31m\nb" + "x" * 500}, memoryview(b"")).type_name
    assert name.isprintable()
    assert len(name) <= wire.MAX_NAME


@pytest.mark.parametrize(
    ("tree", "payload"),
    [
        ({"a": ["float64", [3]]}, b"\0" * 16),  # announces more than it brings
        ({"a": ["float64", [1]]}, b"\0" * 16),  # brings more than it announces
        ({"a": ["float64", [10**12, 10**12]]}, b""),  # would be huge
        ({"a": ["float64", [-1]]}, b""),
        ({"a": ["float64", [0, 10**30]]}, b""),
        ({"a": ["float64", [0] + [2**39] * 31]}, b""),
        ({"a": ["float64", [1.0]]}, b"\0" * 8),
        ({"a": ["float64", [True]]}, b"\0" * 8),
        ({"a": ["O", [1]]}, b"\0" * 8),
        ({"a": ["object", [1]]}, b"\0" * 8),
        ({"a": [["float64"], [1]]}, b"\0" * 8),
        ({"a": "float64"}, b""),
        ({"T": ["bfloat16"]}, b""),
        ({"T": [None, []]}, b""),
        ({"d": [[[], 1]]}, b""),  # a key that cannot be one
        ({"d": [1]}, b""),
        ({"x": 1}, b""),
        ({"a": ["float64", []], "t": []}, b"\0" * 8),
        ({"h": True}, b""),
    ],
)
def test_what_is_not_a_value_is_refused(tree, payload):
    with pytest.raises(wire.ProtocolError):
        wire.decode(tree, memoryview(payload))


def reader(data):
    stream = memoryview(data)

    def read(size):
        nonlocal stream
        assert size <= len(stream), "reads more than was announced"
        taken, stream = stream[:size], stream[size:]
        return bytearray(taken)

    return read


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">IQ", wire.MAX_HEADER + 1, 0),
        struct.pack(">IQ", 2, wire.MAX_PAYLOAD + 1),
        struct.pack(">IQ", 2, 2**63),
    ],
)
def test_a_huge_frame_is_refused_before_anything_is_allocated(frame):
    with pytest.raises(wire.ProtocolError, match="larger than the cap"):
        wire.read_frame(reader(frame))


@pytest.mark.parametrize("header", [b"{", b"[1]", b"[" * 100_000, b"\xff\xfe", b'{"x": {"a": 1}}'])
def test_a_header_that_is_no_message_is_refused(header):
    frame = struct.pack(">IQ", len(header), 0) + header
    with pytest.raises(wire.ProtocolError):
        wire.parse(wire.read_frame(reader(frame)))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_refused_and_nothing_else_happens(noise):
    frame = struct.pack(">IQ", len(noise), 0) + noise
    try:
        message = wire.parse(wire.read_frame(reader(frame)))
    except wire.ProtocolError:
        return
    assert isinstance(message, dict)


def test_a_tensor_that_arrives_where_there_is_no_torch_is_no_message(monkeypatch):
    node = {"T": ["float32", [1]]}
    assert wire.parse(frame_of(node, bytes(4)))["value"].shape == (1,)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(wire.ProtocolError, match="not installed"):
        wire.parse(frame_of(node, bytes(4)))


def frame_of(node, payload):
    return json.dumps({"value": node}).encode(), memoryview(payload)
