"""What heads and rules answer about labelled links, and the verdicts: by hand, and of the real model."""

import numpy as np
import pytest

from mha_lib.minilm import head_scores, link_answers, link_verdicts
from mha_lib.minilm.labelled_links import RELATIONS, Labelled, load_links
from mha_lib.real_heads import bert_attention


def some_maps(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def test_words_look_at_others_not_at_themselves():
    weights = np.array([[[0.8, 0.1, 0.1], [0.0, 0.2, 0.7], [0.0, 0.9, 0.1]]])
    assert link_answers.most_looked_at(weights, 0) in (1, 2)
    assert link_answers.most_looked_at(weights, 1) == 2
    # Words 0 and 2 give word 0 a mean of 0.4, but word 2 only 0.1; word 1 is the one that asks.
    assert link_answers.most_looked_at_by_others(weights, 1) == 0


SENTENCES = [
    Labelled("a b c d e", list("abcde"), 0, {"verb": [(1, 0), (3, 0)], "pronoun": [(4, 1)]}),
    Labelled("a b c d f", list("abcdf"), 0, {"verb": [(2, 0)], "pronoun": [(4, 2)]}),
    Labelled("u v w x y z", list("uvwxyz"), 1, {"verb": [(1, 0), (5, 2)], "pronoun": []}),
]


def previous_and_first(w):
    """A head that looks at the word before, and one where all look at the first word."""
    before = np.eye(w, k=-1) + 0.1
    first = np.full((w, w), 0.1)
    first[:, 0] = 1.0
    return np.stack([before, first])


@pytest.fixture
def answers():
    return link_answers.collect(SENTENCES, [previous_and_first(len(s.words)) for s in SENTENCES], "verb")


def test_collect_asks_every_head_and_every_rule(answers):
    assert answers.block.tolist() == [0, 0, 0, 1, 1]
    assert answers.hits.T.tolist() == [[True, False, False, True, False], [True, True, True, True, False]]
    assert answers.offset[:, link_answers.OFFSETS.index(-1)].tolist() == [True, False, False, True, False]
    assert answers.offset[:, link_answers.OFFSETS.index(-3)].tolist() == [False, True, False, False, True]
    assert answers.place[:, 0].tolist() == [True, True, True, True, False]
    assert answers.whoever[:, 1].tolist() == [True, True, True, True, False]
    np.testing.assert_allclose(answers.chance, [0.25, 0.25, 0.25, 0.2, 0.2])


def test_backwards_a_word_may_have_several_right_answers():
    maps = [previous_and_first(len(s.words)) for s in SENTENCES]
    back = link_answers.collect(SENTENCES, maps, "verb", backwards=True)
    assert len(back.block) == 4  # the first word of the first sentence has two verbs
    assert back.offset[0, link_answers.OFFSETS.index(1)]
    assert back.offset[0, link_answers.OFFSETS.index(3)]
    np.testing.assert_allclose(back.chance[0], 2 / 4)


def test_links_at_one_distance_can_be_left_out():
    maps = [previous_and_first(len(s.words)) for s in SENTENCES]
    far = link_answers.collect(SENTENCES, maps, "verb", without=-1)
    assert len(far.block) == 3
    assert not far.offset[:, link_answers.OFFSETS.index(-1)].any()


def test_shuffled_distances_keep_how_common_a_distance_is():
    # All links have distance −1, so shuffling changes nothing for the head that looks there.
    sentences = [Labelled("", list("abcdefg"), i, {"verb": [(2, 1), (5, 4)]}) for i in range(3)]
    shuffled = link_answers.collect(sentences, [previous_and_first(7)] * 3, "verb", repeats=11).shuffled
    assert shuffled.shape == (11, 2)
    np.testing.assert_array_equal(shuffled[:, 0], 1.0)
    np.testing.assert_array_equal(shuffled[:, 1], 0.0)


def test_exchanged_links_end_in_their_sentence_and_every_distance_stays_as_common(rng):
    lengths = rng.integers(5, 12, size=30)
    queries, targets = (rng.integers(lengths) for _ in range(2))
    drawn = link_answers.exchange_targets(queries, targets, lengths, repeats=13, seed=3)
    assert drawn.shape == (13, 30)
    assert (drawn >= 0).all()
    assert (drawn < lengths).all()
    expected = np.sort(targets - queries)
    for row in drawn:
        np.testing.assert_array_equal(np.sort(row - queries), expected)
    assert (drawn != targets).mean() > 0.5  # and they are exchanged


def test_twin_hits_looks_at_the_pronoun_that_changes():
    maps = [previous_and_first(5), previous_and_first(5), previous_and_first(6)]
    maps[0][0, 4, 1] = maps[1][0, 4, 1] = 2.0  # the first head always says word 1
    got = link_answers.twin_hits(SENTENCES, maps)
    assert got.shape == (1, 2, 2)
    assert got[0].T.tolist() == [[True, False], [False, False]]


def test_twin_shifts_see_weight_that_moves_without_a_new_choice():
    maps = [previous_and_first(5), previous_and_first(5), previous_and_first(6)]
    maps[0][0, 4, [1, 2]] = [0.6, 0.2]  # the first twin means word 1, the second word 2
    maps[1][0, 4, [1, 2]] = [0.4, 0.3]  # still more on word 1
    np.testing.assert_allclose(link_answers.twin_shifts(SENTENCES, maps), [[(0.6 / 0.2) / (0.4 / 0.3), 1.0]])


def test_over_divisions_tests_every_question_in_each_and_keeps_blocks_together():
    hits = np.array([[1, 0], [1, 0], [1, 0], [1, 1], [1, 0]], dtype=bool)
    right, chosen = link_verdicts.over_divisions(hits, np.array([0, 0, 1, 2, 3]), repeats=7)
    assert right.tolist() == [1.0] * 5
    assert chosen.tolist() == [1.0, 0.0]
    # Two blocks, and for each a candidate that is right there only: the other's is always chosen.
    right, chosen = link_verdicts.over_divisions(np.array([[1, 0], [0, 1]], dtype=bool), np.array([0, 1]))
    assert right.tolist() == [0.0, 0.0]
    assert chosen.tolist() == [0.5, 0.5]


def test_a_candidate_is_never_tested_where_it_was_chosen(rng):
    # Pure luck: 500 candidates that guess one of two. The best on all questions looks good.
    hits = rng.random((60, 500)) < 0.5
    right, chosen = link_verdicts.choose_and_test(hits, np.arange(60) % 2)
    assert hits.mean(axis=0).max() > 0.65
    assert right.mean() < 0.6
    assert hits[1::2].mean(axis=0).argmax() == chosen[0]
    np.testing.assert_array_equal(right[::2], hits[::2, chosen[0]])


def test_halves_keep_blocks_together():
    assert link_verdicts.halves(np.array([0, 0, 1, 2, 2, 3])).tolist() == [0, 0, 1, 0, 0, 1]


def test_the_interval_is_that_of_the_normal_distribution_for_many_blocks(rng):
    values = rng.normal(3.0, 2.0, size=900)
    low, high = link_verdicts.interval(values, np.arange(900))
    half = 1.96 * values.std() / 30
    np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half], atol=0.02)


def test_the_interval_is_wider_if_blocks_hang_together(rng):
    values, block = np.repeat(rng.normal(size=40), 5), np.repeat(np.arange(40), 5)
    together, apart = link_verdicts.interval(values, block), link_verdicts.interval(values, np.arange(200))
    assert together[1] - together[0] > 1.7 * (apart[1] - apart[0])


def test_judge_sees_through_a_head_that_only_looks_at_the_word_before():
    sentences = [
        Labelled("", list("abcdefgh"), i, {"verb": [(5, 4), (2 + i % 3, 0)], "pronoun": []}) for i in range(8)
    ]
    maps = [previous_and_first(8)[:1]] * 8
    verdict = link_verdicts.judge(link_answers.collect(sentences, maps, "verb"))
    assert verdict.questions == 16
    assert verdict.heads == [0, 0]
    assert verdict.share == verdict.tuned == verdict.offset == 0.5
    assert verdict.gain == 0
    assert verdict.gain_interval == (0, 0)
    assert verdict.share_interval[0] <= 0.5 <= verdict.share_interval[1]


# The real model on the labelled sentences.


@pytest.fixture(scope="module")
def sentences():
    return load_links()


@pytest.fixture(scope="module")
def real(sentences):
    from mha_lib.minilm.minilm import MiniLM

    model = MiniLM()
    maps = []
    for sentence in sentences:
        weights = model.run(sentence.text, bert_attention)[1]  # (6, 12, n, n)
        places = head_scores.owners(sentence.text, model.tokens(sentence.text))
        assert set(places) - {-1} == set(range(len(sentence.words)))
        maps.append(head_scores.word_maps(weights, places).reshape(72, len(sentence.words), -1))
    return maps


@pytest.fixture(scope="module")
def verdicts(sentences, real):
    asked = [(relation, backwards) for relation in RELATIONS for backwards in (False, True)]
    return {ask: link_verdicts.judge(link_answers.collect(sentences, real, *ask)) for ask in asked}


def test_two_real_heads_beat_every_rule_and_no_other_does(verdicts):
    clear = {
        ask: v.heads
        for ask, v in verdicts.items()
        if v.share_interval[0] > max(v.offset, v.place, v.whoever, v.shuffled, v.chance)
    }
    # Layer 4 head 2 and layer 2 head 8, counted from 1; the same on both halves.
    assert clear == {("pronoun", False): [37, 37], ("preposition", False): [19, 19]}
    assert all(verdicts[ask].gain_interval[0] > 0.1 for ask in clear)


def test_rules_that_know_nouns_on_a_sentence_worked_by_hand():
    words = ["she", "saw", "the", "small", "dog", "near", "his", "house"]
    links = {"pronoun": [(6, 4)], "verb": [], "adjective": [(3, 4)], "preposition": [(5, 7)]}
    sentence = Labelled(" ".join(words), words, 0, links)
    assert link_answers.marked_nouns([sentence]) == [[4, 7]]
    assert link_answers.noun_rules([sentence], "pronoun").tolist() == [[True, True, False, False]]
    assert link_answers.noun_rules([sentence], "adjective").tolist() == [[True, False, True, False]]
    assert link_answers.noun_rules([sentence], "preposition").tolist() == [[False, False, True, False]]
    weights = np.zeros((2, 8, 8))
    weights[0, [0, 1, 2], [4, 4, 7]] = 1.0  # "the" looks too far
    weights[1, :, 4] = 1.0
    np.testing.assert_allclose(link_answers.to_next_noun([sentence], [weights]), [2 / 3, 1.0])
    np.testing.assert_allclose(link_answers.to_next_noun([sentence], [weights], {"the"}), [0.0, 1.0])


def test_the_first_noun_that_fits_need_not_be_the_first():
    words = ["the", "street", "pleased", "the", "king", "because", "he", "saw", "it"]
    links = {"pronoun": [(6, 4), (8, 1)], "verb": []}
    sentence = Labelled(" ".join(words), words, 0, links)
    assert link_answers.noun_rules([sentence], "pronoun")[:, [0, 3]].tolist() == [[False, True], [True, True]]


def test_twins_have_the_same_marked_nouns(sentences):
    nouns = link_answers.marked_nouns(sentences)
    for i in range(0, 20, 2):
        assert nouns[i] == nouns[i + 1]
        assert len(nouns[i]) >= 2


def test_the_pronoun_head_beats_rules_that_know_nouns_and_the_preposition_head_does_not(
    sentences, verdicts, real
):
    *places, fitting = link_answers.noun_rules(sentences, "pronoun").mean(axis=0)
    assert verdicts["pronoun", False].share > max(places) + 0.1
    assert fitting > verdicts["pronoun", False].share  # a rule that knows what fits is ahead
    behind = link_answers.noun_rules(sentences, "preposition").mean(axis=0)[2]
    assert behind > verdicts["preposition", False].share
    assert (
        link_answers.to_next_noun(sentences, real)[19] > 0.4
    )  # words that are no prepositions look there too


def test_no_real_head_beats_the_neighbour_between_verb_and_subject(verdicts):
    for backwards in (False, True):
        assert verdicts["verb", backwards].gain_interval[1] <= 0


def test_no_real_head_follows_more_than_a_few_of_the_twins(sentences, real):
    hits = link_answers.twin_hits(sentences, real)
    assert hits.shape == (10, 2, 72)
    assert hits.all(axis=1).mean(axis=0).max() < 0.4


def test_every_relation_is_asked_at_least_fifty_times_in_both_directions(verdicts):
    assert min(v.questions for v in verdicts.values()) >= 50


def test_the_weight_of_the_pronoun_head_shifts_to_the_noun_that_is_meant(sentences, real):
    assert (link_answers.twin_shifts(sentences, real)[:, 37] > 1).sum() == 8  # of ten


def test_a_third_head_is_clear_of_the_distance_over_many_divisions(sentences, real):
    answers = link_answers.collect(sentences, real, "preposition", backwards=True)
    right, chosen = link_verdicts.over_divisions(answers.hits, answers.block)
    assert chosen.argmax() == 24  # layer 3 head 1, counted from 1
    assert right.mean() > answers.offset.mean(axis=0).max() + 0.1
