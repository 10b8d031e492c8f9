import numpy as np
import pytest
import torch

from mha_lib.experiments.induction import (
    VOCABULARY,
    AttentionOnly,
    N,
    can_be_foretold,
    head_scores,
    repeated_sequences,
    seen_before,
    train,
)

EXACT = torch.diag(torch.ones(N - 2), -1)


@pytest.fixture(scope="module")
def sequences():
    torch.manual_seed(1)
    return repeated_sequences(300)


def test_sequences_repeat_with_their_period(sequences):
    tokens, period = sequences
    assert tokens.shape == (300, N)
    assert set(period.flatten().tolist()) == set(range(6, 17))
    for row, p in zip(tokens, period.flatten().tolist(), strict=True):
        assert torch.equal(row[p:], row[:-p])


def test_blocks_of_distinct_tokens_are_distinct():
    tokens, period = repeated_sequences(20, (4, 9), distinct=True)
    for row, p in zip(tokens, period.flatten().tolist(), strict=True):
        assert len(set(row[:p].tolist())) == p


def test_what_can_be_foretold_is_what_the_rule_decides(sequences):
    tokens, period = sequences
    known = can_be_foretold(sequences)
    for row, p, decided in zip(tokens[:40].tolist(), period[:40].flatten().tolist(), known, strict=False):
        for i in range(N - 1):
            followers = {row[j + 1] for j in range(i) if row[j] == row[i]}
            assert bool(decided[i]) == (i >= p and len(followers) == 1)
            if decided[i]:
                assert followers == {row[i + 1]}


def test_one_layer_of_four_heads_has_as_many_parameters_as_two_of_two():
    def count(layers, heads):
        return sum(p.numel() for p in AttentionOnly(layers, heads).parameters())

    assert count(1, 4) == count(2, 2) != count(1, 2)


def test_the_model_does_not_see_the_future(sequences):
    model, tokens = AttentionOnly(2, 2), sequences[0][:3].clone()
    before = model(tokens)[0]
    tokens[:, 20:] = (tokens[:, 20:] + 1) % VOCABULARY
    after = model(tokens)[0]
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.allclose(before[:, 20:], after[:, 20:])


def test_scores_of_heads_that_do_exactly_this(sequences):
    tokens, period = sequences
    model = AttentionOnly(2, 2)
    previous, induction = head_scores(model, sequences, {(0, 1): EXACT, (1, 0): torch.zeros(N - 1, N - 1)})
    assert previous.shape == induction.shape == (2, 2)
    assert previous[0, 1] == pytest.approx(1)
    assert previous[1, 0] == induction[1, 0] == 0
    after = np.array(
        [
            [i >= p and row[i - 2] == row[i] for i in range(1, N - 1)]
            for row, p in zip(tokens.tolist(), period.flatten().tolist(), strict=True)
        ]
    )
    expected = after.sum() / (torch.arange(N - 1) >= period).sum().item()
    assert induction[0, 1] == pytest.approx(expected, abs=1e-6)


def test_where_a_token_stood_before():
    tokens = torch.tensor([[3, 4, 3, 3, 4, 9]])
    assert seen_before(tokens)[0].nonzero().tolist() == [[2, 0], [3, 0], [3, 2], [4, 1]]


def test_training_is_measured_at_twenty_steps_and_at_the_end():
    run = train(1, 2, periods=(10, 10), steps=40)
    assert run.steps.tolist() == list(range(0, 41, 2))
    assert run.accuracy[-1] > run.accuracy[0]
    assert run.previous.shape == run.induction.shape == (21,)


def test_looking_far_back_at_whatever_stands_there_scores_a_little(sequences):
    back = torch.arange(N - 1)[:, None] - torch.arange(N - 1)
    far = ((back >= 5) & (back <= 15)).float()
    far /= far.sum(dim=-1, keepdim=True).clamp(min=1)
    even = torch.ones(N - 1, N - 1).tril()
    even /= even.sum(dim=-1, keepdim=True)
    scores = head_scores(AttentionOnly(1, 2), sequences, {(0, 0): far, (0, 1): even})[1][0]
    assert scores[1] + 0.03 < scores[0] < 0.25
