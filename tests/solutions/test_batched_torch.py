"""The assignment `batched_torch`: what partly right answers earn, and which mistakes they are taken for."""

import pytest

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
