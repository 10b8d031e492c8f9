"""Each mistake is shown by an example that the right code gets right, with its wrong lines and no more."""

import ast
import builtins
import inspect
import sys
import textwrap

import numpy as np
import pytest

from mha_lib.pitfalls import BANK, FAMILIES, catalogue, variants
from mha_lib.pitfalls.catalogue import (
    as_code,
    as_text,
    call_of,
    differ,
    expose,
    helpers_in,
    names_in,
    run,
    wrong_lines,
)
from mha_lib.pitfalls.examples import Item, batched_torch, items
from mha_lib.pitfalls.examples.modern_heads import nothing_to_see, odd_width
from mha_lib.pitfalls.examples.multi_head import does_not_divide, no_features
from mha_lib.pitfalls.weak_checks import WEAK_CHECKS

RAISING = {does_not_divide, no_features, odd_width, nothing_to_see}  # there the right code raises an error
ITEMS = items()
each_item = pytest.mark.parametrize("place", ITEMS)
each_family = pytest.mark.parametrize(
    "slugs", [[each.slug for each in family] for family in FAMILIES.values()], ids=FAMILIES
)


def parameters(function):
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]


@each_item
def test_a_variant_is_called_like_the_right_code_and_says_what_is_wrong(place):
    right = ITEMS[place].right
    for slug, wrong in variants(*place.split(".")).items():
        if hasattr(right, "forward"):  # a layer: what it is made with may have other defaults
            assert [name for name, _ in parameters(wrong)] == [name for name, _ in parameters(right)], slug
            assert parameters(wrong.forward) == parameters(right.forward), slug
        else:
            assert parameters(wrong) == parameters(right), slug
        assert wrong.__doc__.startswith("Wrong: "), slug


@each_family
def test_an_example_exposes_the_mistake(slugs):
    for slug in slugs:
        exposed = expose(slug)
        assert slug in variants(*exposed.place.split(".")), slug
        assert exposed.comes != exposed.expected, slug
        assert exposed.lines.strip(), slug
        assert exposed.input.endswith((".", "?")), slug
        assert exposed.place.split(".")[1] in exposed.call, slug
        assert exposed == expose.__wrapped__(slug), f"{slug}: the same at every run"


@each_item
def test_the_right_code_answers_an_example_always_in_the_same_way(place):
    for example in ITEMS[place].examples:
        first, second = (run(example, ITEMS[place].right) for _ in range(2))
        assert isinstance(first, ValueError) == (example in RAISING), example
        assert not isinstance(first, Exception) or isinstance(first, ValueError), example
        assert not differ(first, second), example


def test_every_example_is_of_use():
    shown = {(exposed.place, exposed.call) for exposed in map(expose, BANK)}
    for place, item in ITEMS.items():
        assert [example for example in item.examples if (place, call_of(example)) not in shown] == []


@each_family
def test_the_right_code_is_not_given_away(slugs):
    for slug in slugs:
        place = expose(slug).place
        right = [line for line in catalogue._lines(ITEMS[place].right) if line.startswith("return ")]
        shown = {line.strip() for line in expose(slug).lines.splitlines()}
        body = {line for line in catalogue._lines(ITEMS[place].right) if "=" in line} | set(right)
        assert not body <= shown, slug


def test_only_the_wrong_lines_are_shown():
    lines = wrong_lines("single_head.attention", "mask-inverted")
    assert lines == "# …\nif mask is not None:\n    scores = np.where(mask, -np.inf, scores)\n# …"


def test_a_line_under_a_condition_is_shown_with_it_and_with_the_other_case():
    assert wrong_lines("transformer_block.TransformerBlock", "feed-forward-residual-missing") == (
        "class FeedForwardResidualMissing(right.TransformerBlock):\n"
        "    def forward(self, x, mask=None):\n"
        "        if self.norm_first:\n"
        "            # …\n"
        "            return self.feed_forward(self.norm2(x))\n"
        "        # …\n"
        "        return self.norm2(self.feed_forward(x))"
    )


def test_the_decorator_that_registers_is_not_shown():
    assert "mistake" not in wrong_lines("single_head.softmax", "softmax-first-axis")
    assert "mistake" not in wrong_lines("batched_torch.MultiHeadAttention", "no-scale")


def test_a_decorator_stands_above_its_function():
    lines = wrong_lines("transformer_block.TransformerBlock", "norm-without-mean").splitlines()
    assert [line.strip() for line in lines[1:3]] == ["@staticmethod", "def normalise(x):"]


def test_the_shape_of_a_wide_line_stands_above_it():
    lines = wrong_lines("single_head.padding_mask", "padding-off-by-one")
    assert lines == (
        "# (batch, 1, 1, max_len)\nreturn np.arange(max_len) <= np.asarray(lengths)[:, None, None, None]"
    )


def test_a_function_that_is_wrong_is_shown_with_what_uses_it():
    lines = wrong_lines("multi_head.multi_head_attention", "heads-fold-by-reshape")
    assert "return combine_heads_without_transpose(heads) @ W_O" in lines
    assert "\n\ndef combine_heads_without_transpose(x):\n    batch, num_heads, n, d_k = x.shape\n" in lines


@each_family
def test_what_is_shown_is_whole_and_narrow(slugs):
    for slug in slugs:
        exposed = expose(slug)
        ast.parse(as_code(exposed.lines))  # no line stands under a head that is not shown
        assert exposed.lines == exposed.lines.strip("\n"), slug
        assert exposed.lines.count("\n\n\n") == 0, slug
        assert max(map(len, [*exposed.lines.splitlines(), *exposed.call.splitlines()])) <= 79, slug


@each_family
def test_no_wrong_code_seems_to_call_itself(slugs):
    for slug in slugs:
        exposed = expose(slug)
        assert exposed.place.split(".")[1] not in names_in(ast.parse(as_code(exposed.lines))), slug


def locals_of(code):
    """Arguments, and what is assigned also in lines that are not shown."""
    nodes = list(ast.walk(ast.parse(textwrap.dedent(inspect.getsource(code)))))
    assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return (
        assigned | {n.arg for n in nodes if isinstance(n, ast.arg)} | {getattr(n, "name", "") for n in nodes}
    )


@each_family
def test_every_name_in_the_wrong_lines_is_known_or_explained(slugs):
    for slug in slugs:
        exposed = expose(slug)
        parts = catalogue._wrong_parts(variants(*exposed.place.split("."))[slug])
        around = vars(sys.modules[parts[0].__module__])
        explained = {name.partition("(")[0] for name, _ in exposed.helpers}
        own = explained.union(*map(locals_of, parts), vars(builtins), {"np", "torch", "nn", "right"})
        for name in names_in(ast.parse(as_code(exposed.lines))):
            built_before = getattr(around.get(name), "__module__", "").startswith("mha_lib.")
            built_before &= "pitfalls" not in getattr(around.get(name), "__module__", "")
            assert name in own or built_before, (slug, name)


def test_a_helper_is_explained_by_how_it_is_called_and_its_first_sentence():
    assert expose("gradient-cut-off").helpers == (
        ("averaged(weights, V)", "The output and the weights, in the dtype of the values."),
        (
            "masked_softmax(scores, mask)",
            "The softmax over the keys that a query may attend to; zeros if there are none.",
        ),
        ("scaled_scores(Q, K)", "Q Kᵀ / √d_k, in single precision at least."),
    )


def test_of_a_method_that_is_written_anew_the_right_one_is_explained():
    names = [name for name, _ in expose("mask-of-first-call").helpers]
    assert names == ["CausalInSteps", "mask(x)"]
    sentence = dict(expose("mask-of-first-call").helpers)["mask(x)"]
    assert sentence == "when right, the mask `(n, n)`: of the buffer `causal`, the first n rows and columns."
    used = dict(expose("dropout-missing").helpers)["weigh(Q, K, mask)"]
    assert used.startswith("The weights before dropout")


def test_what_is_assigned_in_the_lines_is_no_helper():
    assert "linears" in expose("linear-applied-transposed").lines
    assert [name for name, _ in expose("linear-applied-transposed").helpers] == ["split_heads(x)"]
    assert helpers_in("x = x + 1", variants("single_head", "softmax")["softmax-first-axis"]) == []


def test_only_checks_of_the_item_that_is_shown_are_named():
    assert "boolean" in BANK["mask-inverted"].passes
    assert expose("mask-inverted").passes == (WEAK_CHECKS["shape"], WEAK_CHECKS["no mask"])
    assert expose("only-output-returned").passes == ()


def test_every_mistake_in_counting_bytes_gives_another_number():
    found = [expose(slug).comes for slug in BANK if expose(slug).place == "efficient_heads.kv_cache_bytes"]
    assert len(found) == 13
    assert len(set(found)) == 13


def test_of_a_layer_made_around_a_wrong_function_that_function_is_shown():
    lines = wrong_lines("multi_head.multi_head_attention", "softmax-twice")
    assert "weights = softmax(softmax(scores))" in lines


def test_a_method_that_does_nothing_is_shown_as_such():
    assert wrong_lines("efficient_heads.CachedAttention", "cache-not-reset").endswith("pass")


def test_an_example_is_shown_as_lines_to_run():
    call = call_of(batched_torch.gradient_of_queries)
    assert call.startswith("Q = torch.tensor([[1.0, 2.0]], requires_grad=True)\n")
    assert call.endswith("output.square().sum().backward()\nQ.grad")


def test_a_mistake_that_no_example_shows_is_told(monkeypatch):
    item = ITEMS["single_head.softmax"]
    fewer = {**ITEMS, "single_head.softmax": Item(item.right, item.examples[:1])}
    monkeypatch.setattr(catalogue, "items", lambda: fewer)
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
