import pytest
import torch

from mha_lib.experiments.training import minimise, reproducible


def test_the_same_seed_gives_the_same_numbers_and_leaves_those_of_the_caller_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    drawn = []
    for seed in (0, 0, 1):
        with reproducible(seed):
            assert torch.get_num_threads() == 1
            drawn.append(torch.rand(2))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.rand(2), expected)


def test_the_caller_has_all_as_it_was_after_an_error():
    threads = torch.get_num_threads()
    state = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), reproducible(0):
        torch.rand(1 // 0)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_minimise_takes_the_steps_of_adam_under_one_cycle():
    target = torch.tensor([1.0, -2.0, 3.0])
    x, other = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    seen = []
    minimise(lambda: (x - target).square().sum(), [x], 50, 0.3, lambda step: seen.append((step, x.tolist())))

    adam = torch.optim.Adam([other], lr=0.3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, 0.3, total_steps=50)
    for _ in range(50):
        other.grad = 2 * (other - target).detach()
        adam.step()
        schedule.step()
    assert torch.allclose(x, other, atol=1e-5)
    assert (x - target).norm() < target.norm() / 5
    assert [step for step, _ in seen] == list(range(51))
    assert seen[0][1] == [0.0, 0.0, 0.0]
    assert seen[-1][1] == x.tolist()
