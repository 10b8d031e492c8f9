"""Scores of heads, on heads that are known."""

import numpy as np
import pytest

from mha_lib.minilm import head_scores
from mha_lib.real_heads import offset_score

TOKENS = ["[CLS]", "the", "home", "##work", ",", "the", ".", "[SEP]"]


def some_maps(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_mean_over_texts_counts_every_text_the_same(rng):
    maps = [some_maps(rng, 2, 3, n, n) for n in (4, 9)]
    got = head_scores.mean_over_texts(maps, lambda weights: offset_score(weights, -1))
    expected = [
        [
            np.mean([np.mean([m[a, b, i, i - 1] for i in range(1, m.shape[-1])]) for m in maps])
            for b in range(3)
        ]
        for a in range(2)
    ]
    np.testing.assert_allclose(got, expected)


def test_delimiters_are_brackets_and_punctuation():
    assert head_scores.is_delimiter([*TOKENS, "'", "7"]).tolist() == [
        True,
        False,
        False,
        False,
        True,
        False,
        *[True] * 3,
        False,
    ]


def test_delimiter_score_equals_a_loop(rng):
    maps = some_maps(rng, 3, 8, 8)
    expected = [np.mean([sum(head[q, k] for k in (0, 4, 6, 7)) for q in (1, 2, 3, 5)]) for head in maps]
    np.testing.assert_allclose(head_scores.delimiter_score(maps, TOKENS), expected)


def test_broadcast_score_is_1_if_all_look_at_one_key_and_1_over_m_if_weights_are_equal():
    one_key = np.zeros((4, 5))
    one_key[:, 3] = 1.0
    scores, keys = head_scores.broadcast_score(np.array([one_key, np.full((4, 5), 0.2)]))
    np.testing.assert_allclose(scores, [1.0, 0.2])
    assert keys[0] == 3


def test_broadcast_score_takes_the_mean_before_the_maximum():
    scores, _ = head_scores.broadcast_score(np.eye(4)[None])  # every query has a key of its own
    np.testing.assert_allclose(scores, [0.25])


def test_repetition_score_equals_a_loop(rng):
    tokens = ["a", "b", "a", "c", "b", "a", "d"]
    maps = some_maps(rng, 3, 7, 7)
    others = {i: [j for j in range(7) if j != i and tokens[j] == tokens[i]] for i in range(7)}
    asked = [i for i in range(7) if others[i]]
    expected = [np.mean([sum(head[i, j] for j in others[i]) for i in asked]) for head in maps]
    scores, chance = head_scores.repetition_score(maps, tokens)
    np.testing.assert_allclose(scores, expected)
    assert chance == pytest.approx(np.mean([len(others[i]) / 7 for i in asked]))
    equal, _ = head_scores.repetition_score(np.full((1, 7, 7), 1 / 7), tokens)
    assert equal[0] == pytest.approx(chance)


def test_owners_joins_pieces_and_contractions():
    tokens = ["[CLS]", "it", "didn", "'", "t", "rain", ";", "home", "##work", "did", ".", "[SEP]"]
    got = head_scores.owners("It didn't rain; homework did.", tokens)
    assert got.tolist() == [-1, 0, 1, 1, 1, 2, -1, 3, 3, 4, -1, -1]


@pytest.mark.parametrize("tokens", [["[CLS]", "no", "work"], ["home", "##works"], ["work"]])
def test_owners_refuses_tokens_of_another_text(tokens):
    with pytest.raises(ValueError, match="is not the next token"):
        head_scores.owners("No homework.", tokens)


def test_word_maps_sums_over_keys_and_averages_over_queries(rng):
    maps, places = some_maps(rng, 2, 3, 6, 6), np.array([-1, 0, 1, 1, -1, 2])
    got = head_scores.word_maps(maps, places)
    assert got.shape == (2, 3, 3, 3)
    np.testing.assert_allclose(got[..., 1, 0], maps[..., [2, 3], 1].mean(axis=-1))
    np.testing.assert_allclose(got[..., 0, 1], maps[..., 1, [2, 3]].sum(axis=-1))
    np.testing.assert_allclose(got[..., 1, 1], maps[..., 2:4, 2:4].sum(axis=-1).mean(axis=-1))
