"""Sentences read by the model, and tables of verdicts."""

import numpy as np

from mha_lib.minilm.labelled_links import RELATIONS, Labelled, load_links
from mha_lib.minilm.link_answers import collect
from mha_lib.minilm.link_tables import (
    FROM_NOUN,
    TO_NOUN,
    Reading,
    head_name,
    judge_all,
    read_sentences,
    verdict_table,
)
from mha_lib.minilm.link_verdicts import judge
from mha_lib.minilm.minilm import MiniLM


def reading(rng):
    """Six sentences of seven words with links of every relation, and three heads."""
    links = {relation: [(i, 0), (i + 2, 6)] for i, relation in enumerate(RELATIONS, 1)}
    sentences = [Labelled("a b c d e f g", list("abcdefg"), block, links) for block in range(6)]
    words = [rng.dirichlet(np.ones(7), size=(3, 7)) for _ in sentences]  # (heads, w, w) each
    return Reading(sentences, [], [], words)


def test_heads_are_named_from_1():
    assert [head_name(head) for head in (0, 11, 12, 71)] == ["L1H1", "L1H12", "L2H1", "L6H12"]


def test_every_relation_is_judged_in_both_directions():
    read = reading(np.random.default_rng(0))
    verdicts = judge_all(read)
    assert set(verdicts) == {*TO_NOUN.values(), *FROM_NOUN.values()}
    for relation in RELATIONS:
        assert verdicts[TO_NOUN[relation]] == judge(collect(read.sentences, read.words, relation))
        assert verdicts[FROM_NOUN[relation]] == judge(collect(read.sentences, read.words, relation, True))


def test_far_leaves_out_what_the_commonest_distance_answers():
    verdicts = judge_all(reading(np.random.default_rng(1)), far=True)
    assert verdicts[TO_NOUN["pronoun"]].questions == 6  # of 12: each of the two distances answers six


def test_a_table_has_a_line_for_each_verdict_with_its_numbers():
    verdicts = judge_all(reading(np.random.default_rng(2)))
    rows = [line.strip("| ").split(" | ") for line in verdict_table(verdicts).splitlines()[2:]]
    assert [row[0] for row in rows] == list(verdicts)
    for row, v in zip(rows, verdicts.values(), strict=True):
        assert int(row[1]) == v.questions
        assert row[3].startswith(f"**{v.share:.2f}**")
        assert row[4:8] == [f"{x:.2f}" for x in (v.offset, v.place, v.whoever, v.shuffled)]
        assert row[8].startswith(f"{v.gain:+.2f}".replace("-", "−"))


def test_the_model_reads_words_whose_weights_are_those_of_their_tokens():
    sentences = load_links()[:2]
    read = read_sentences(MiniLM(), sentences)
    for sentence, tokens, maps, words in zip(sentences, read.tokens, read.maps, read.words, strict=True):
        assert maps.shape == (72, len(tokens), len(tokens))
        assert words.shape == (72, len(sentence.words), len(sentence.words))
        np.testing.assert_allclose(maps.sum(-1), 1.0, atol=1e-5)
        assert (words.sum(-1) <= 1 + 1e-5).all()
