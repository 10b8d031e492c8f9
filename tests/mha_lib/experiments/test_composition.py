import pytest
import torch

from mha_lib.experiments.block_stack import BlockStack
from mha_lib.experiments.composition import CONTENT, KINDS, compose, composition_batch, reports


def test_a_query_wants_the_content_that_its_pointer_names():
    torch.manual_seed(0)
    n = 5
    x, pointer, wanted = composition_batch(7, n)
    assert x.shape == (7, 3 * n, 2 * n + CONTENT + KINDS)
    number, names, content, kind = x.split([n, n, CONTENT, KINDS], dim=-1)
    for sequence in range(7):
        assert kind[sequence].argmax(-1).tolist() == [0] * n + [1] * n + [2] * n
        assert number[sequence].argmax(-1).tolist() == list(range(n)) * 3
        for i in range(n):
            leads_to = int(names[sequence, n + i].argmax())
            assert leads_to == pointer[sequence, i]
            assert torch.equal(content[sequence, 2 * n + leads_to], wanted[sequence, i])


def test_neither_queries_nor_contents_know_what_the_pointers_say():
    torch.manual_seed(1)
    n = 4
    x = composition_batch(6, n)[0]
    names, content = x[..., n : 2 * n], x[..., 2 * n : 2 * n + CONTENT]
    assert names[:, :n].abs().sum() == names[:, 2 * n :].abs().sum() == 0
    assert content[:, : 2 * n].abs().sum() == 0
    assert names[:, n : 2 * n].sum(-1).eq(1).all()


def test_in_one_block_the_weights_from_queries_to_contents_ignore_the_pointers():
    torch.manual_seed(2)
    n = 4
    block = BlockStack(2 * n + CONTENT + KINDS, 1, 2, 16, n + CONTENT)
    x = composition_batch(1, n)[0]
    other = x.clone()
    other[:, n : 2 * n, n : 2 * n] = x[:, n : 2 * n, n : 2 * n].roll(1, dims=1)

    def ratios(tokens):
        states = block.blocks[0].norm1(block.embed(tokens))
        attention = block.blocks[0].attention
        q, k = attention.q_proj(states)[:, :n], attention.k_proj(states)[:, 2 * n :]
        scores = q.unflatten(-1, (2, -1)).transpose(1, 2) @ k.unflatten(-1, (2, -1)).transpose(1, 2).mT
        return scores.softmax(-1)  # how the weight on contents is shared among them

    assert torch.equal(ratios(x), ratios(other))
    named, found = reports(block, x, n)
    assert named.shape == (1, n, n)
    assert found.shape == (1, n, CONTENT)


def test_the_number_of_heads_changes_no_parameter_and_a_seed_gives_the_same_numbers_again():
    first, again, other = (compose(1, heads, steps=2, seed=seed) for heads, seed in ((2, 4), (2, 4), (4, 5)))
    assert first == again
    assert first.explained != other.explained
    assert first.parameters == other.parameters


@pytest.mark.parametrize("d_model", [16, 24])
def test_a_stack_is_as_wide_as_it_is_asked_to_be(d_model):
    stack = BlockStack(5, 2, 4, 10, 3, d_model=d_model)
    assert stack.read_out.in_features == stack.embed.out_features == d_model
    assert stack(torch.randn(2, 6, 5)).shape == (2, 6, 3)
