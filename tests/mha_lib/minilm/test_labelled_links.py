"""The labelled sentences: complete, readable, and varied enough that no fixed distance is right by itself."""

from collections import Counter
from itertools import pairwise

import pytest

from mha_lib.minilm.labelled_links import (
    LATER,
    MEN,
    PEOPLE,
    PLURAL,
    RELATIONS,
    WOMEN,
    agrees,
    load_links,
    place_of,
)

PRONOUNS = {"he", "she", "it", "they", "him", "her", "them", "his", "its", "their", "themselves"}


@pytest.fixture(scope="module")
def sentences():
    return load_links()


def test_there_are_enough_sentences_and_no_two_are_equal(sentences):
    texts = [sentence.text for sentence in sentences]
    assert len(texts) >= 60
    assert len(set(texts)) == len(texts)
    assert all(text.isascii() and text[0].isupper() and text.endswith(".") for text in texts)


def test_every_link_joins_two_different_words_of_its_sentence_and_none_is_there_twice(sentences):
    for sentence in sentences:
        for links in sentence.links.values():
            assert len(set(links)) == len(links)
            for start, end in links:
                assert 0 <= start < len(sentence.words)
                assert 0 <= end < len(sentence.words)
                assert start != end


@pytest.mark.parametrize("relation", RELATIONS)
def test_there_are_enough_links_and_their_distances_vary(sentences, relation):
    distances = Counter(end - start for sentence in sentences for start, end in sentence.links[relation])
    assert distances.total() >= 50
    assert max(distances.values()) / distances.total() < 2 / 3


def test_first_words_are_what_the_relation_says(sentences):
    def starts(relation):
        return {s.words[start].lower() for s in sentences for start, _ in s.links[relation]}

    assert starts("pronoun") == PRONOUNS
    prepositions = """under on of in to near with towards for before over by behind about through at without after
        beside from within during onto around"""
    assert starts("preposition") == set(prepositions.split())


def test_antecedents_stand_before_and_behind_near_and_far(sentences):
    distances = [end - start for sentence in sentences for start, end in sentence.links["pronoun"]]
    assert min(distances) <= -10
    assert max(distances) > 0
    assert len(set(distances)) >= 10


def test_adjectives_stand_before_their_noun_and_behind_it(sentences):
    distances = [end - start for sentence in sentences for start, end in sentence.links["adjective"]]
    assert min(sum(d > 0 for d in distances), sum(d < 0 for d in distances)) >= 15


def test_twins_differ_in_one_word_and_in_one_pronoun(sentences):
    pairs = [(a, b) for a, b in pairwise(sentences) if a.block == b.block]
    assert len(pairs) == 10
    assert max(Counter(s.block for s in sentences).values()) == 2
    for a, b in pairs:
        assert sum(x != y for x, y in zip(a.words, b.words, strict=True)) == 1
        [first], [second] = (set(x.links["pronoun"]) - set(y.links["pronoun"]) for x, y in ((a, b), (b, a)))
        assert first[0] == second[0]


def test_a_number_says_which_of_several_equal_words_is_meant():
    words = ["to", "lend", "it", "to"]
    assert (place_of("to#1", words), place_of("to#2", words), place_of("lend", words)) == (0, 3, 1)


@pytest.mark.parametrize("name", ["to", "to#3", "to#0", "book"])
def test_a_name_that_is_not_clear_is_refused(name):
    with pytest.raises(ValueError, match="names no word, or more than one"):
        place_of(name, ["to", "lend", "it", "to"])


def test_a_link_to_a_word_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("# a comment\nThe cat sat.\nverb: sat > dog\n")
    with pytest.raises(ValueError, match="dog"):
        load_links(path)


def test_a_file_is_read_block_by_block(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text(
        "# a comment\n\nIt's late.\nverb: It's > late\nIt's so.\n\nHe ran to me.\npreposition: to > me\n"
    )
    one, two, three = load_links(path)
    assert (one.words, one.block, one.links["verb"]) == (["It's", "late"], 0, [(0, 1)])
    assert (two.block, two.links["verb"]) == (0, [])
    assert (three.block, three.links["preposition"]) == (1, [(2, 3)])


def test_later_sentences_are_others_and_their_twins_differ_in_one_word(sentences):
    later = load_links(LATER)
    assert not {s.text for s in later} & {s.text for s in sentences}
    pairs = [(a, b) for a, b in pairwise(later) if a.block == b.block]
    assert (len(pairs), len(later) - 2 * len(pairs)) == (21, 30)
    for a, b in pairs:
        assert sum(x != y for x, y in zip(a.words, b.words, strict=True)) == 1
        [(query, first)], [(other, second)] = a.links["pronoun"], b.links["pronoun"]
        assert query == other
        assert first != second


@pytest.mark.parametrize(
    ("pronoun", "noun", "right"),
    [
        ("it", "street", True),
        ("its", "crew", False),  # the crew are several
        ("They", "pupils", True),
        ("them", "street", False),
        ("she", "nurse", True),
        ("he", "nurse", True),
        ("he", "queen", False),
        ("her", "king", False),
        ("it", "king", False),
        ("he", "stone", False),
    ],
)
def test_a_pronoun_agrees_in_number_kind_and_sex(pronoun, noun, right):
    assert agrees(pronoun, noun) is right


def test_every_pronoun_agrees_with_its_noun(sentences):
    for sentence in [*sentences, *load_links(LATER)]:
        words = sentence.words
        assert all(agrees(words[start], words[end]) for start, end in sentence.links["pronoun"])


def test_kinds_of_nouns_are_words_of_the_sentences(sentences):
    words = {word for sentence in [*sentences, *load_links(LATER)] for word in sentence.words}
    assert words >= PLURAL | PEOPLE | WOMEN | MEN
    assert PEOPLE >= WOMEN | MEN
    assert not WOMEN & MEN
