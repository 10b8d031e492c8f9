import pytest
import torch

from mha_lib.experiments.block_stack import (
    D_MODEL,
    BlockStack,
    N,
    follow_pointers,
    gradient_norms,
    pointer_batch,
)


def one_hot_to_numbers(x):
    return [x[..., i * N : (i + 1) * N].argmax(-1).tolist() for i in range(3)]


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_target_is_the_letter_at_the_end_of_the_hops(hops):
    torch.manual_seed(0)
    x, target = pointer_batch(5, hops)
    assert x.shape == (5, N, 3 * N)
    assert torch.equal(x.sum(-1), torch.full((5, N), 3.0))
    for pointers, letters, positions, wanted in zip(*one_hot_to_numbers(x), target.tolist(), strict=True):
        assert positions == list(range(N))
        assert sorted(letters) == list(range(N))
        for start in range(N):
            end = start
            for _ in range(hops):
                end = pointers[end]
            assert wanted[start] == letters[end]


def test_pointers_lead_once_around_all_positions():
    torch.manual_seed(1)
    for pointers in one_hot_to_numbers(pointer_batch(7, 1)[0])[0]:
        tour = [0]
        while len(tour) < N:
            tour.append(pointers[tour[-1]])
        assert sorted(tour) == list(range(N))
        assert pointers[tour[-1]] == 0


def test_a_stack_is_its_blocks_and_in_pre_norm_one_more_norm():
    torch.manual_seed(2)
    x = torch.randn(3, 5, 6)
    for norm_first in (True, False):
        stack = BlockStack(6, 2, 4, 10, 7, norm_first)
        expected = stack.blocks[1](stack.blocks[0](stack.embed(x)))
        if norm_first:
            expected = torch.nn.functional.layer_norm(expected, (D_MODEL,))
        assert torch.allclose(stack(x), stack.read_out(expected), atol=1e-6)


def test_one_block_follows_one_pointer_in_few_steps():
    assert follow_pointers(1, 1, hops=1, steps=200).right > 0.99


def test_the_gradient_norms_are_those_of_the_down_projections():
    assert gradient_norms(3, True, xavier=False, seeds=2).shape == (2, 3)
    assert (gradient_norms(3, True, xavier=False, seeds=1) != gradient_norms(3, True, seeds=1)).all()
    assert (gradient_norms(3, True, seeds=2)[0] == gradient_norms(3, True, seeds=1)[0]).all()


def test_a_seed_gives_the_same_numbers_again():
    first, again, other = (follow_pointers(1, 2, 1, steps=3, seed=seed).right for seed in (4, 4, 5))
    assert first == again != other
