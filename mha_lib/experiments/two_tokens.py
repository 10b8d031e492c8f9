"""One head on two tokens: how often a *linear* read-out can name both, counted over all pairs.

A head gives the first of two tokens the weight a and the second one the weight b = 1 − a. It delivers the
mixture a·e_s + b·e_t of their one-hot vectors, for tokens s and t of a small vocabulary. Two linear read-outs
name the first and the second token. An answer is the read-out's largest entry.
"""

from itertools import product

import numpy as np

from mha_lib.attention import attention


def pairs_of(vocabulary: int) -> np.ndarray:
    """All ordered pairs of tokens `(vocabulary², 2)`, the same token twice among them."""
    return np.array(list(product(range(vocabulary), repeat=2)))


def smaller_and_larger(vocabulary: int) -> np.ndarray:
    """What two linear read-outs name if both tokens have the weight 1/2: the smaller and the larger token.

    The one multiplies entry k of the mixture by vocabulary − k, so that of two equal entries the smaller token's
    wins. The other multiplies it by k + 1.

    Returns:
        The two names `(vocabulary², 2)` for each of `pairs_of(vocabulary)`.

    >>> smaller_and_larger(2).tolist()  # for the pairs (0, 0), (0, 1), (1, 0), (1, 1)
    [[0, 0], [0, 1], [0, 1], [1, 1]]
    """
    mixtures = np.eye(vocabulary)[pairs_of(vocabulary)].mean(axis=1)  # (vocabulary², vocabulary)
    rising = np.arange(1, vocabulary + 1)
    return np.stack([(mixtures * rising[::-1]).argmax(axis=1), (mixtures * rising).argmax(axis=1)], axis=1)


def named_by_weights_that_speak(vocabulary: int) -> np.ndarray:
    """What two linear read-outs name if the weights depend on the tokens, and the values say where a token stands.

    One query looks at two places. The score of a key is log(token + 1), and log(vocabulary + 1) more at the second
    place, so the second token always has the larger weight, and the read-out that takes the largest entry names it.
    The other read-out cancels all that comes from the second token. What is left is the line 2·g·x − g² for each
    token's number g, at the x of the first token, and of these lines the one with g = x is the highest.

    Returns:
        The two names `(vocabulary², 2)` for each of `pairs_of(vocabulary)`.
    """
    number = np.arange(1.0, vocabulary + 1)  # g, (vocabulary,)
    louder = vocabulary + 1.0
    pairs = pairs_of(vocabulary)
    one_hot, place = np.eye(vocabulary)[pairs], np.broadcast_to(np.eye(2), (len(pairs), 2, 2))
    values = np.concatenate([one_hot, place], axis=-1)  # (pairs, 2, vocabulary + 2)
    keys = np.log(number)[pairs][..., None] + np.log([[1.0], [louder]])  # (pairs, 2, 1)
    mixture = attention(np.ones((len(pairs), 1, 1)), keys, values)[0][:, 0]  # (pairs, vocabulary + 2)
    first = np.concatenate(
        [-(number**2)[:, None] / ((1 + louder) * number), 2 * number[:, None], np.zeros((vocabulary, 1))],
        axis=1,
    )  # (vocabulary, vocabulary + 2)
    return np.stack([(mixture @ first.T).argmax(axis=1), mixture[:, :vocabulary].argmax(axis=1)], axis=1)
