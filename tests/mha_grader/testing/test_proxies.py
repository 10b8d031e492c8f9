"""A function, a class, a module: the same through the sandbox as in this process, and every step on record."""

import numpy as np
import pytest
import torch

from mha_grader.grading.session import Session
from mha_grader.testing import (
    CallError,
    Mismatch,
    attribute_of,
    construct,
    filled,
    gradients,
    keep,
    load_parameters,
    parameters_of,
)
from mha_grader.testing.proxies import Recorder, TestedClass, TestedFunction, local

SOURCE = """
import torch
from torch import nn

def add(x, y, *, out=None):
    x += y
    return x, [y]

class Counter:
    def __init__(self, start):
        self.total = start
    def forward(self, x):
        self.total = self.total + x
        return self.total
    def reset(self):
        self.total = 0 * self.total

class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.unused = nn.Parameter(torch.ones(1))
    def forward(self, x, power=1):
        return self.linear(x) ** power, None

def copy_of(linear, scale=1):
    scaled = Scale(linear.in_features)
    scaled.linear.load_state_dict(linear.state_dict())
    with torch.no_grad():
        scaled.linear.weight.mul_(scale)
        linear.bias.zero_()
    return scaled

answer = {"number": 42, "arrays": (torch.ones(2),)}
"""


@pytest.fixture(scope="module")
def session():
    with Session() as session:
        assert session.execute("cell", SOURCE, 60) is None
        yield session


def here():
    namespace = {}
    exec(SOURCE, namespace)
    return local(**namespace)


@pytest.fixture(params=["in the sandbox", "in this process"])
def recorder(request, session):
    return Recorder(session.perform if request.param == "in the sandbox" else here())


def anything(*args): ...


def test_a_function_gets_copies_and_what_it_changed_is_known(recorder):
    add = recorder.bind("add", anything)
    assert isinstance(add, TestedFunction)
    x, y = np.zeros(2), np.ones(2)
    total, (same,) = add(x, y, out=None)
    assert np.array_equal(total, [1, 1])
    assert np.array_equal(same, [1, 1])
    assert add.changed == ("0",)
    total += 5
    assert not x.any()
    assert np.array_equal(recorder.steps[0].value[0], [1, 1])
    assert keep(add, x, y, out=None).changed == ("0",)


def test_objects_keep_their_state_apart(recorder):
    counter = recorder.bind("Counter", type)
    assert isinstance(counter, TestedClass)
    one, two = counter(np.ones(2)), counter(np.zeros(2))
    assert np.array_equal(one.forward(np.ones(2)), [2, 2])
    assert np.array_equal(two.forward(np.ones(2)), [1, 1])
    assert np.array_equal(one.forward(x=np.ones(2)), [3, 3])
    one.reset()
    assert np.array_equal(one.forward(np.ones(2)), [1, 1])
    with pytest.raises(CallError) as caught:
        one.missing()
    assert caught.value.type_names[0] == "AttributeError"


def test_parameters_are_loaded_and_gradients_taken(recorder):
    module = recorder.bind("Scale", type)(3)
    weight, bias = torch.randn(3, 3, dtype=torch.float64), torch.randn(3)
    load_parameters(module, {"linear.weight": weight, "linear.bias": bias.numpy()})
    x = torch.randn(5, 3)
    expected = x @ weight.float().T + bias
    assert torch.allclose(module(x)[0], expected, atol=1e-6)
    assert torch.allclose(module(x, power=2)[0], expected**2, atol=1e-5)
    cotangent = torch.randn(5, 3)
    found = gradients(module, [x], [0, "linear.bias", "linear.weight", "unused"], cotangent)
    assert torch.allclose(found[0], cotangent @ weight.float(), atol=1e-5)
    assert torch.allclose(found[1], cotangent.sum(0), atol=1e-5)
    assert torch.allclose(found[2], cotangent.T @ x, atol=1e-5)
    assert found[3] is None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"linear.weight": np.zeros((3, 2))}, "it should have shape (3, 2)"),
        ({"other.weight": np.zeros((3, 3))}, "other"),
    ],
)
def test_parameters_that_do_not_fit_are_an_error(recorder, parameters, words):
    module = recorder.bind("Scale", type)(3)
    with pytest.raises(CallError) as caught:
        module.load_parameters(parameters)
    assert words in caught.value.text
    with pytest.raises(Mismatch, match=r"it has no parameter \w+\.weight of shape \(3, \d\)"):
        load_parameters(module, parameters)


def test_modules_are_switched_and_moved_by_their_own_methods(recorder):
    module = recorder.bind("Scale", type)(2)
    module.double()
    assert module(torch.ones(1, 2, dtype=torch.float64))[0].dtype == torch.float64
    module.eval()
    state = module.state_dict()
    assert set(state) == {"linear.weight", "linear.bias", "unused"}


def test_attributes_of_a_module_and_of_its_parameters_are_read(recorder):
    module = recorder.bind("Scale", type)(2)
    assert attribute_of(module, "training") is True
    assert attribute_of(module, "linear.in_features", "training") == (2, True)
    module.eval()
    assert attribute_of(module, "training") is False
    assert parameters_of(module, "shape", "is_leaf") == [((1,), True), ((2, 2), True), ((2,), True)]
    assert parameters_of(module, "requires_grad") == [(True,)] * 3
    with pytest.raises(CallError):
        attribute_of(module, "no_such_thing")


def test_the_gradient_of_an_argument_that_is_changed_in_place_is_taken(recorder):
    found = gradients(recorder.bind("add", anything), [torch.ones(2), torch.ones(2)], [0, 1], torch.ones(2))
    assert [each.tolist() for each in found] == [[1, 1], [1, 1]]


def test_objects_are_made_of_installed_classes_handed_on_and_kept(recorder):
    copy_of = recorder.bind("copy_of", anything)
    linear = construct(copy_of, "torch.nn.Linear", 3, 3, bias=True)
    weight = torch.randn(3, 3)
    load_parameters(linear, {"weight": weight, "bias": torch.ones(3)})
    scaled = keep(copy_of, linear, scale=2)
    assert copy_of.changed == ()
    x = torch.randn(5, 3)
    assert torch.allclose(scaled(x)[0], 2 * x @ weight.T + 1, atol=1e-6)
    assert torch.allclose(linear(x), x @ weight.T, atol=1e-6)
    (found,) = gradients(linear, [x], ["weight"], torch.ones(5, 3))
    assert torch.allclose(found, x.sum(0).expand(3, 3), atol=1e-6)
    assert keep(scaled, x).__class__ is scaled.__class__  # a tuple of tensors, which stays there
    with pytest.raises(CallError) as caught:
        construct(copy_of, "torch.nn.NoSuchLayer")
    assert caught.value.type_names[0] == "AttributeError"


def test_objects_are_arguments_by_name_as_well(recorder):
    copy_of = recorder.bind("copy_of", anything)
    linear = construct(recorder.bind("Scale", type), "torch.nn.Linear", 3, 3)
    load_parameters(linear, {"weight": torch.eye(3), "bias": torch.zeros(3)})
    assert torch.equal(keep(copy_of, linear=linear)(torch.ones(1, 3))[0], torch.ones(1, 3))


def test_a_filled_module_is_the_same_for_everyone(recorder):
    one, two = filled(recorder.bind("Scale", type)(3)), filled(recorder.bind("Scale", type)(3))
    assert torch.equal(one(torch.ones(2, 3))[0], two(torch.ones(2, 3))[0])


def test_a_value_is_plain_data(recorder):
    answer = recorder.bind("answer", {})
    assert answer["number"] == 42
    assert torch.equal(answer["arrays"][0], torch.ones(2))


def test_what_is_not_there_is_missing(recorder):
    with pytest.raises(CallError) as caught:
        recorder.bind("nothing", {})
    assert caught.value.kind == "missing"


def test_a_record_can_be_replayed(recorder):
    module = recorder.bind("Scale", type)(3)
    load_parameters(module, {"linear.weight": torch.eye(3), "linear.bias": torch.ones(3)})
    module(torch.ones(2, 3))
    again = Recorder(here())
    values = [again._perform(step.request)[0] for step in recorder.steps]
    assert torch.equal(values[-1][0], recorder.steps[-1].value[0])


def test_an_error_is_on_record(recorder):
    with pytest.raises(CallError):
        recorder.bind("add", anything)("a", 1)
    assert recorder.steps[0].error.type_names[0] == "TypeError"
