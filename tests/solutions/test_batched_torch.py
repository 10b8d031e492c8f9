"""The assignment `batched_torch`: what partly right answers earn, and which mistakes they are taken for."""

import pytest
import torch

from mha_lib import pitfalls, torch_attention


def test_most_of_from_builtin_can_be_had_with_a_layer_that_computes_nothing(grade):
    class Unfinished(torch_attention.MultiHeadAttention):
        def forward(self, x, mask=None):
            raise NotImplementedError

    def from_builtin(builtin):
        layer = torch_attention.from_builtin(builtin)
        layer.__class__ = Unfinished
        return layer

    row = grade("from_builtin", from_builtin)
    assert row.score >= row.max_score / 2


def test_a_missing_parameter_is_named(grade):
    class Renamed(torch_attention.MultiHeadAttention):
        def __init__(self, d_model, num_heads, dropout=0.0):
            super().__init__(d_model, num_heads, dropout)
            self.W_Q, self.q_proj = self.q_proj, None

    row = grade("MultiHeadAttention", Renamed)
    assert "no parameter q_proj.weight of shape (6, 6)" in row.reasons["values"]
    assert row.slugs == {}


def test_code_that_looks_at_numbers_may_fail_on_a_device_without_any(lost):
    class Looks(torch_attention.CausalSelfAttention):
        def forward(self, x):
            output = super().forward(x)
            return output if output.abs().max() < 1e30 else output.nan_to_num()

    assert lost("CausalSelfAttention", Looks) == set()


def test_keys_kept_from_an_earlier_call_are_not_taken_for_a_mask(grade):
    class Keeps(torch_attention.CausalSelfAttention):
        keys = None

        def forward(self, x):
            qkv = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, self.d_k))
            Q, K, V = qkv.permute(2, 0, 3, 1, 4)
            self.keys = K if self.keys is None or self.keys.shape != K.shape else self.keys
            n = x.shape[1]
            heads, _ = torch_attention.attention(Q, self.keys, V, self.causal[:n, :n])
            return self.out_proj(heads.transpose(1, 2).flatten(2))

    row = grade("CausalSelfAttention", Keeps)
    assert row.statuses["moves to another device"] != "pass"
    assert row.slugs == {}


@pytest.mark.parametrize("kept", [lambda layer: layer.weight, lambda layer: layer.weight.detach().clone()])
def test_what_is_kept_of_the_weights_shows_once_other_weights_are_loaded(lost, kept):
    class Keeps(torch_attention.MultiHeadAttention):
        weights = None

        def forward(self, x, mask=None):
            if self.weights is None:
                self.weights = [kept(linear) * 1.0 for linear in (self.q_proj, self.k_proj, self.v_proj)]
            linears = (self.q_proj, self.k_proj, self.v_proj)
            projected = [x @ W.T + linear.bias for W, linear in zip(self.weights, linears, strict=True)]
            Q, K, V = map(self.split_heads, projected)
            heads, weights = torch_attention.attention(Q, K, V, mask)
            heads = self.dropout(weights) @ V if self.training else heads
            return self.out_proj(heads.transpose(1, 2).flatten(2))

    assert "state dict" in lost("MultiHeadAttention", Keeps)


def test_the_recognised_mistake_does_not_depend_on_the_name_of_the_class(grade):
    wrong = pitfalls.variants("batched_torch", "CausalSelfAttention")["mask-not-a-buffer"]
    renamed = type("CausalSelfAttention", (wrong,), {})
    row = grade("CausalSelfAttention", renamed)
    assert row.slugs == {"moves to another device": "mask-not-a-buffer"}


@pytest.mark.parametrize(
    ("merge", "slug"),
    [
        (lambda heads: heads.transpose(1, 2).flatten(2), "split-without-transpose"),
        (
            lambda heads: heads.reshape(heads.shape[0], -1, heads.shape[1] * heads.shape[3]),
            "heads-fold-by-reshape",
        ),
    ],
)
def test_a_view_without_transposition_is_named_whichever_way_the_heads_are_merged(grade, merge, slug):
    class Layer(torch_attention.MultiHeadAttention):
        def forward(self, x, mask=None):
            shape = (x.shape[0], self.num_heads, x.shape[1], self.d_k)
            Q, K, V = (linear(x).view(shape) for linear in (self.q_proj, self.k_proj, self.v_proj))
            weights = self.dropout(torch_attention.attention(Q, K, V, mask)[1])
            return self.out_proj(merge(weights @ V))

    assert set(grade("MultiHeadAttention", Layer).slugs.values()) == {slug}


@pytest.mark.parametrize("item", ["MultiHeadAttention", "CausalSelfAttention"])
@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (True, True, "the reverse at the end"),
        (True, False, "view went straight to (b, h, n, d_k)"),
        (False, True, "joined without transposing back"),
    ],
)
def test_the_visible_checks_have_a_word_for_a_view_without_transposition(
    loaded, monkeypatch, item, first, last, words
):
    class Layer(getattr(torch_attention, item)):
        def forward(self, x, mask=None):
            (b, n, _), h = x.shape, self.num_heads
            causal = hasattr(self, "qkv_proj")
            three = (
                self.qkv_proj(x).chunk(3, -1)
                if causal
                else (p(x) for p in (self.q_proj, self.k_proj, self.v_proj))
            )
            Q, K, V = (
                t.reshape(b, h, n, -1) if first else t.reshape(b, n, h, -1).transpose(1, 2) for t in three
            )
            heads = torch_attention.attention(Q, K, V, torch.ones(n, n).tril().bool() if causal else mask)[0]
            return self.out_proj((heads if last else heads.transpose(1, 2)).reshape(b, n, -1))

    assignment = loaded["batched_torch"]
    namespace = {}
    monkeypatch.syspath_prepend(assignment.files)
    for cell in assignment.cells:
        if cell.kind == "given" or cell.id == "imports_for_checks":
            exec(cell.released, namespace)
    namespace[item] = Layer
    with pytest.raises(AssertionError) as caught:
        exec(assignment.cell("test", item).released, namespace)
    assert words in str(caught.value).splitlines()[0]
