"""A library's attention is shown to a person, whatever it is called, and nothing else is."""

import pytest

from mha_grader.policy import flags


@pytest.mark.parametrize(
    ("source", "line", "name"),
    [
        ("import torch.nn.functional as F\nF.scaled_dot_product_attention(Q, K, V)", 2, "scaled_dot_product"),
        ("from torch.nn.functional import scaled_dot_product_attention as mine", 1, "scaled_dot_product"),
        ("x = 1\n\nf = getattr(F, 'scaled_dot_product_attention')", 3, "scaled_dot_product_attention"),
        ("self.inner = nn.MultiheadAttention(8, 2)", 1, "MultiheadAttention"),
        ("import torch.nn as nn\nlayer = nn.TransformerEncoderLayer", 2, "TransformerEncoderLayer"),
        ("from mha_lib.attention import attention", 1, "mha_lib"),
        ("import mha_lib.attention", 1, "mha_lib"),
    ],
)
def test_the_line_is_named(source, line, name):
    (flag,) = flags("attention", source)
    assert flag.startswith(f"line {line} uses a library's {name}")
    assert source.splitlines()[line - 1].strip() in flag


@pytest.mark.parametrize(
    "source",
    [
        "def attention(Q, K, V):\n    # not F.scaled_dot_product_attention\n    return softmax(Q @ K.T) @ V",
        '"""Like scaled_dot_product_attention, by hand."""',
        "class MultiHeadAttention(nn.Module): pass",
        "def broken(:",
        "scaled_dot_product_attention(" * 2000,
        "",
    ],
)
def test_own_code_and_talk_about_it_are_left_alone(source):
    assert flags("attention", source) == ()


def test_what_an_item_asks_for_may_be_used_and_its_lack_is_told():
    asked = "def sdpa_attention(Q, K, V):\n    return F.scaled_dot_product_attention(Q, K, V)"
    assert flags("sdpa_attention", asked) == ()
    assert "was asked for" in flags("sdpa_attention", "def sdpa_attention(Q, K, V):\n    return Q")[0]
    assert flags("from_builtin", "isinstance(builtin, nn.MultiheadAttention)") == ()
    assert flags("from_builtin", asked) != ()
