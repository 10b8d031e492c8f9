import numpy as np
import pytest

from mha_lib.minilm.related_words import FRAMES, KINDS, related_factors


def test_every_word_stands_once_and_every_frame_takes_two():
    words = [word for pair in KINDS for word in pair]
    assert len(set(words)) == len(words)
    for frame in FRAMES:
        assert frame.count("{}") == 2
        assert not set(frame.lower().split()) & set(words)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_factor_compares_one_of_the_kind_with_another_word_in_the_same_place(frame):
    asked = []

    def between(text):
        """Head 0 knows which pairs belong together; head 1 looks at the word for the kind from everywhere."""
        words = text.rstrip(".").split()
        member, kind = (next(w for w in words if w in those) for those in zip(*KINDS, strict=True))
        weights = np.full((2, len(words), len(words)), 0.125)
        asked.append((member, kind, words.index(member), words.index(kind)))
        if (member, kind) in KINDS:
            weights[0, words.index(kind), words.index(member)] = 0.5
        weights[1, :, words.index(kind)] = 0.75
        return weights

    factors = related_factors(frame, between)
    assert factors.shape == (len(KINDS), 2)
    assert np.array_equal(factors, np.tile([4.0, 1.0], (len(KINDS), 1)))
    assert len({places for _, _, *rest in asked for places in [tuple(rest)]}) == 1
    for used in zip(*(pair[:2] for pair in asked), strict=True):
        assert all(used.count(word) == 2 for word in set(used))  # once related, once not
