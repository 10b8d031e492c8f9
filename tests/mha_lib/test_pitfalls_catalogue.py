"""Each mistake is shown by an example that the right code gets right, with its wrong lines and no more."""

import inspect

import numpy as np
import pytest

from mha_lib.pitfalls import BANK, catalogue, torch_examples, variants
from mha_lib.pitfalls.catalogue import ITEMS, as_text, call_of, differ, expose, run, wrong_lines
from mha_lib.pitfalls.examples import does_not_divide, no_features
from mha_lib.torch_attention import sdpa_attention

RAISING = {does_not_divide, no_features}  # there the right code raises an error
RIGHT = {place: item.right for place, item in ITEMS.items()} | {
    "batched_torch.sdpa_attention": sdpa_attention  # shown in no example of its own
}
VARIANTS = [(place, slug) for place in RIGHT for slug in variants(*place.split("."))]
EXAMPLES = [(place, example) for place, item in ITEMS.items() for example in item.examples]


def parameters(function):
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(("place", "slug"), VARIANTS)
def test_a_variant_is_called_like_the_right_code_and_says_what_is_wrong(place, slug):
    wrong, right = variants(*place.split("."))[slug], RIGHT[place]
    if hasattr(right, "forward"):  # a layer: what it is made with may have other defaults
        assert [name for name, _ in parameters(wrong)] == [name for name, _ in parameters(right)]
        assert parameters(wrong.forward) == parameters(right.forward)
    else:
        assert parameters(wrong) == parameters(right)
    assert wrong.__doc__.startswith("Wrong: ")


@pytest.mark.parametrize("slug", BANK)
def test_an_example_exposes_the_mistake(slug):
    exposed = expose(slug)
    assert slug in variants(*exposed.place.split("."))
    assert exposed.comes != exposed.expected
    assert exposed.lines.strip()
    assert exposed.input.endswith((".", "?"))
    assert exposed.place.split(".")[1] in exposed.call
    assert exposed == expose.__wrapped__(slug), "the same at every run"


@pytest.mark.parametrize(("place", "example"), EXAMPLES)
def test_the_right_code_answers_an_example_always_in_the_same_way(place, example):
    first, second = (run(example, ITEMS[place].right) for _ in range(2))
    assert isinstance(first, ValueError) == (example in RAISING)
    assert not isinstance(first, Exception) or isinstance(first, ValueError)
    assert not differ(first, second)


@pytest.mark.parametrize(("place", "example"), EXAMPLES)
def test_every_example_is_of_use(place, example):
    shown = [slug for slug in BANK if expose(slug).place == place and expose(slug).call == call_of(example)]
    assert shown


@pytest.mark.parametrize("slug", BANK)
def test_the_right_code_is_not_given_away(slug):
    place = expose(slug).place
    right = [line for line in catalogue._lines(ITEMS[place].right) if line.startswith("return ")]
    shown = {line.strip() for line in expose(slug).lines.splitlines()}
    body = {line for line in catalogue._lines(ITEMS[place].right) if "=" in line} | set(right)
    assert not body <= shown


def test_only_the_wrong_lines_are_shown():
    lines = wrong_lines("single_head.attention", "mask-inverted")
    assert lines == "# …\n    scores = np.where(mask, -np.inf, scores)\n# …"


def test_a_function_that_is_wrong_is_shown_with_what_uses_it():
    lines = wrong_lines("transformer_block.TransformerBlock", "norm-without-mean")
    assert "normalise = staticmethod(by_root_mean_square)" in lines
    assert "\n\ndef by_root_mean_square(...):\n    return x / (x.square()" in lines


def test_of_a_layer_made_around_a_wrong_function_that_function_is_shown():
    lines = wrong_lines("multi_head.multi_head_attention", "softmax-twice")
    assert "weights = softmax(softmax(scores))" in lines


def test_a_method_that_does_nothing_is_shown_as_such():
    assert wrong_lines("efficient_heads.CachedAttention", "cache-not-reset").endswith("pass")


def test_an_example_is_shown_as_lines_to_run():
    call = call_of(torch_examples.gradient_of_queries)
    assert call.startswith("Q = torch.tensor([[1.0, 2.0]], requires_grad=True)\n")
    assert call.endswith("output.square().sum().backward()\nQ.grad")


def test_a_mistake_that_no_example_shows_is_told(monkeypatch):
    item = ITEMS["single_head.softmax"]
    monkeypatch.setitem(ITEMS, "single_head.softmax", catalogue.Item(item.right, item.examples[:1]))
    with pytest.raises(LookupError, match=r"no example of single_head\.softmax exposes softmax-fixed-axis"):
        expose.__wrapped__("softmax-fixed-axis")  # without what is remembered


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.ones(3), np.ones((3, 1))),
        (np.ones(3), np.ones(3, dtype=bool)),
        (np.ones(3), np.array([1.0, 1.0, 1.1])),
        (np.ones(3), np.array([1.0, 1.0, np.nan])),
        (np.ones(3), (np.ones(3), np.ones(3))),
        ((1, np.ones(3)), (1, np.zeros(3))),
        (4, 4.0),
        (1.0, float("nan")),
        (None, ValueError("no")),
        (ValueError("no"), TypeError("no")),
    ],
)
def test_results_that_differ(first, second):
    assert differ(first, second)
    assert not differ(first, first)


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (np.array([[-0.0, 1 / 3]]), np.zeros((1, 2)), "[[0.     0.3333]]"),
        (np.zeros((1, 2)), np.zeros(2), "[[0. 0.]]\nshape (1, 2)"),
        (np.arange(6) / 3, None, "[0.     0.3333 0.6667 1.     1.3333\n 1.6667]"),
        (np.arange(6).reshape(1, 6) / 3, None, "[[0.     0.3333 0.6667 1.     1.3333 1.6667]]"),
        ((4, np.zeros(1)), (4, np.zeros(2)), "4\n[0.]\nshape (1,)"),
        ((4, 5), 4, "4\n5"),
        (4.0, 4, "4.0"),
        (1 / 3, 4, "0.333333"),
        (float("nan"), 4, "nan"),
        (None, 4, "None"),
        (ValueError("too  few\nheads"), 4, "ValueError: too few heads"),
    ],
)
def test_results_as_text(value, other, text):
    assert as_text(value, other) == text
