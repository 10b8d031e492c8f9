"""Laws of one head: its weights under made-up scores show what its softmax, its scale or its mask does.

The values are one-hot, so that the output *is* the weights. Queries and keys are mostly numbers, so that a score is
their product. A law recognises one mistake however the code is written. It finds a softmax along the queries, for
instance, whatever the code subtracts from the scores and whatever it fills the mask with.
"""

import re
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mha_lib.attention import softmax
from mha_lib.pitfalls.code import law
from mha_lib.pitfalls.evidence import given

Array = np.ndarray
KEEP_TWO = np.array([[True, True, False]])  # of three keys
LOWER = np.tri(3, dtype=bool)
PAST_EXP = 600.0  # scores of this size make exp overflow, or lie beyond where people clip them
# Outputs of each tested function, by how it was called and the inputs: many laws ask for the same ones.
_asked: MutableMapping[Any, dict[Any, Array]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Head:
    """How to call one head of an item, and how to read a recorded call of it.

    Attributes:
        attend: takes the tested function, Q, K, V and a mask or None, and returns the output `(..., n, d_v)`.
        scores: gives the scores of a recorded call, or None if the call does not show them.
        mask: gives the mask of a recorded call.
        tested: the function that was handed in.
    """

    attend: Callable[..., Array]
    scores: Callable[[Any], Array | None] = lambda step: None
    mask: Callable[[Any], Array | None] = lambda step: given(step, 3, "mask")
    tested: Any = None

    def weights(self, q: Any, k: Any, mask: Array | None = None) -> Array:
        """The weights `(..., n, m)` under the scores q kᵀ of the numbers q `(..., n)` and k `(..., m)`."""
        q, k = np.asarray(q, float), np.asarray(k, float)
        V = np.broadcast_to(np.eye(k.shape[-1]), (*k.shape, k.shape[-1]))  # (..., m, m)
        return self.output(q[..., None], k[..., None], V.copy(), mask)

    def output(self, Q: Array, K: Array, V: Array, mask: Array | None = None) -> Array:
        """The output `(..., n, d_v)`.

        Raises:
            ValueError: if it has another shape.
        """
        known = _asked.setdefault(self.tested, {})
        key = (
            self.attend,
            *(None if each is None else (each.dtype, each.shape, each.tobytes()) for each in (Q, K, V, mask)),
        )
        if key not in known:
            known[key] = np.array(self.attend(self.tested, Q, K, V, mask))
            known[key].setflags(write=False)
        output = known[key]
        if output.shape != (*Q.shape[:-1], V.shape[-1]):
            raise ValueError(f"the output has the shape {output.shape}")
        return output

    def row(self, scores: Any, mask: Array | None = None) -> Array:
        """The weights `(m,)` of one query."""
        return self.weights([1.0], scores, mask)[0]


Tells = Callable[[Head], bool]


def close(first: Any, second: Any) -> bool:
    """Whether two results are the same up to what single precision may change."""
    first, second = np.asarray(first), np.asarray(second)
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-4, atol=1e-6)


def outer(q: Sequence[float], k: Sequence[float]) -> Array:
    """Scores `(n, m)` of numbers."""
    return np.multiply.outer(q, k).astype(float)


# --- the softmax -------------------------------------------------------------------------------------------

QUERIES, KEYS = (0.0, 1.0, 3.0), (2.0, 0.0, 1.0)
SCORES = outer(QUERIES, KEYS)  # (3, 3), not symmetric


def whole_matrix(head: Head) -> bool:
    """All weights together sum to 1."""
    weights = head.weights(QUERIES, KEYS)
    return close(weights.sum(), 1.0) and bool((weights > 0).all())


def over_queries(head: Head) -> bool:
    """The columns sum to 1, and these are not the right weights transposed."""
    weights = head.weights(QUERIES, KEYS)
    columns = close(weights.sum(axis=0), np.ones(3)) and not close(weights.sum(axis=1), np.ones(3))
    return columns and not weights_turned(head)


def over_heads(head: Head) -> bool:
    """The weights are right for a matrix; in a batch, they sum to 1 over the heads."""
    matrix, batch = (
        head.weights(np.zeros(2), np.zeros(4)),
        head.weights(np.zeros((3, 5, 2)), np.zeros((3, 5, 4))),
    )
    return close(matrix, np.full((2, 4), 0.25)) and close(batch, np.full((3, 5, 2, 4), 0.2))


def keys_ask(head: Head) -> bool:
    """The scores are transposed before the softmax."""
    return close(head.weights(QUERIES, KEYS), softmax(SCORES.T))


def weights_turned(head: Head) -> bool:
    """The weights are transposed after the softmax."""
    return close(head.weights(QUERIES, KEYS), softmax(SCORES).T)


def right_at(head: Head, size: float) -> bool:
    """Two equal scores of this size get equal weights, and small scores get the right weights."""
    small = np.array([1.0, 3.0])
    return close(head.row([size, size]), [0.5, 0.5]) and all(
        close(head.row(s), softmax(s)) for s in (small, -small)
    )


def overflows(head: Head) -> bool:
    """Large equal scores of either sign fail, and not all of them give finite, wrong weights."""
    if painted_over(head) or not right_at(head, 500.0) or right_at(head, 1000.0) or right_at(head, -1000.0):
        return False
    return not np.isfinite([head.row([1000.0, 1000.0]), head.row([-1000.0, -1000.0])]).all()


def painted_over(head: Head) -> bool:
    """Where the exponential overflows, the weights are finite and wrong."""
    if not right_at(head, 500.0) or right_at(head, 1000.0) or right_at(head, -1000.0):
        return False
    both = np.isfinite([head.row([1000.0, 1000.0]), head.row([-1000.0, -1000.0])])
    return bool(both.all()) or close(head.row([1000.0, 0.0]), [0.0, 1.0])


def subtracts_smallest(head: Head) -> bool:
    """A score that lies 1000 above the smallest one overflows, wherever it stands."""
    if not (right_at(head, 1000.0) and right_at(head, -1000.0)):
        return False
    return all(np.isnan(head.row(scores)).any() for scores in ([0.0, 1000.0], [1000.0, 0.0], [9e3, 0.0, 1e4]))


def subtracts_mean(head: Head) -> bool:
    """A score that lies 500 or 667 above the mean is right, and one that lies 2000 above it overflows."""
    if not (right_at(head, 1000.0) and right_at(head, -1000.0)):
        return False
    below = ([0.0, 1000.0], [0.0, 0.0, 1000.0])
    if not all(close(head.row(scores), [*[0.0] * (len(scores) - 1), 1.0]) for scores in below):
        return False
    return bool(np.isnan(head.row([0.0, 0.0, 3000.0])).any())


def one_maximum(head: Head) -> bool:
    """A row fails beside one that lies far above it, whichever comes first."""
    small, k = (1.0, 0.0), (1e4, 1e4)
    if not close(head.weights(small, (3.0, 0.0)), softmax(outer(small, (3.0, 0.0)))):
        return False
    first, second = head.weights((1.0, 0.0), k), head.weights((0.0, 1.0), k)
    rights, wrongs = (first[0], second[1]), (first[1], second[0])
    return close(rights, np.full((2, 2), 0.5)) and not np.isclose(wrongs, 0.5).any()


def maximum_of_columns(head: Head) -> bool:
    """The largest score of each column is subtracted."""
    exponentials = np.exp(SCORES - SCORES.max(axis=0))
    return close(head.weights(QUERIES, KEYS), exponentials / exponentials.sum(axis=1, keepdims=True))


def clipped(head: Head) -> bool:
    """Large scores that differ get equal weights."""
    high, low = head.row([3000.0, 2000.0, 0.0]), head.row([-1000.0, -2000.0])
    return right_at(head, 1.0) and (close(high, [0.5, 0.5, 0.0]) or close(low, [0.5, 0.5]))


def three(head: Head) -> Array:
    """The weights under the scores 1, 2 and 3."""
    return head.row([1.0, 2.0, 3.0])


SHIFTS = (np.array([1.0, 2.0, 3.0]), np.array([-2.0, -1.0, 0.0]))  # with and without a maximum subtracted


def evenly_spaced(weights: Array) -> bool:
    """The weights grow in even steps, as logits without an exponential do."""
    steps = np.diff(weights)
    return abs(steps[0]) > 1e-3 and close(steps[0], steps[1])


def without_exponential(head: Head) -> bool:
    """The weights grow in even steps and sum to 1, or they are scores divided by the sum of exponentials."""
    weights = three(head)
    divided = any(close(weights, shift / np.exp(shift).sum()) for shift in SHIFTS)
    return divided or (evenly_spaced(weights) and close(weights.sum(), 1.0))


def not_normalised(head: Head) -> bool:
    """The weights are exponentials, but the sum of a row depends on its scores."""
    weights = three(head)
    exponential = close(weights[1:] / weights[:-1], [np.e, np.e])
    return (
        exponential and not close(weights.sum(), head.row([0.0, 0.0, 0.0]).sum()) and not whole_matrix(head)
    )


def sigmoid(head: Head) -> bool:
    """Each weight is the sigmoid of its score, perhaps divided by the sum of the row."""
    each = [1 / (1 + np.exp(-shift)) for shift in SHIFTS]
    return any(close(three(head), one) or close(three(head), one / one.sum()) for one in each)


def logarithms(head: Head) -> bool:
    """The weights are the logarithms of the right ones, or the negatives of these."""
    right = softmax(SHIFTS[0])
    return close(np.exp(three(head)), right) or close(np.exp(-three(head)), right)


def no_softmax(head: Head) -> bool:
    """The scores are the weights."""
    return close(three(head), SHIFTS[0])


def twice(head: Head) -> bool:
    """The weights went through the softmax again."""
    return close(three(head), softmax(softmax(SHIFTS[0])))


SEVERAL_ROWS: dict[str, Tells] = {
    "softmax-whole-matrix": whole_matrix,
    "max-over-other-axis": maximum_of_columns,
}
SOFTMAX: dict[str, Tells] = {
    "normalised-without-exponential": without_exponential,
    "softmax-not-normalised": not_normalised,
    "sigmoid-instead-of-softmax": sigmoid,
}
OF_A_HEAD: dict[str, Tells] = {
    "softmax-over-queries": over_queries,
    "scores-transposed": keys_ask,
    "weights-transposed": weights_turned,
    "softmax-twice": twice,
    "scores-applied-to-values": no_softmax,
}
# With one head and as many keys as queries, these look like mistakes of a layer.
OF_A_LAYER = {
    slug: tells
    for slug, tells in OF_A_HEAD.items()
    if slug not in ("scores-transposed", "weights-transposed")
}
LARGE: dict[str, Tells] = {
    "no-max-subtraction": overflows,
    "nan-replaced-by-zero": painted_over,
    "min-subtraction": subtracts_smallest,
    "mean-subtraction": subtracts_mean,
    "global-max-subtraction": one_maximum,
    "logits-clipped": clipped,
}


# --- the scale ---------------------------------------------------------------------------------------------


def factor(head: Head, *leading: int) -> tuple[float, float]:
    """The factor that multiplies the scores of keys of width 16, and the sum of a row of weights.

    There are 3 queries and 5 keys, and the values are 7 wide.
    """
    Q, K, V = np.zeros((*leading, 3, 16)), np.zeros((*leading, 5, 16)), np.zeros((*leading, 5, 7))
    Q[..., 0, 0], Q[..., 1, 0] = 0.25, 0.5
    K[..., 1, 0] = 1.0
    V[...] = np.eye(5, 7)
    weights = head.output(Q, K, V).reshape(-1, V.shape[-1])[:2]  # (2, 7)
    scores = np.log(weights[:, 1] / weights[:, 0])  # (2,)
    return float((scores[1] - scores[0]) / 0.25), float(weights[0].sum())


def scaled_by(*factors: float) -> Tells:
    """The scores are multiplied by one of these factors, and the weights sum to 1."""

    def tells(head: Head) -> bool:
        found, total = factor(head)
        return close(total, 1.0) and any(close(found, one) for one in factors)

    return tells


def scaled_afterwards(head: Head) -> bool:
    """The weights sum to 1 / √16."""
    return close(factor(head)[1], 0.25)


def axis_one(head: Head) -> bool:
    """Matrices get the right scale; in a batch, axis 1 is taken for the width."""
    counts = [count**power for count in (3.0, 5.0) for power in (-1.0, -0.5)]
    return close(factor(head)[0], 0.25) and any(close(factor(head, 2)[0], count) for count in counts)


def cosine(head: Head) -> bool:
    """The weights do not change with the length of the keys, or not with that of the queries."""
    Q, K = np.array([[1.0, 0.5]]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    scores, same_length = K @ Q[0], np.array([2**-0.5, 1.0, 1.0]) * (K @ Q[0])  # (3,) each
    for wanted, longer in ((scores, (10 * Q, K)), (same_length, (Q, 10 * K))):
        weights = head.output(Q, K, np.eye(3))[0]
        steps, right = np.diff(np.log(weights)), np.diff(wanted)
        if close(steps * right[0], steps[0] * right) and close(head.output(*longer, np.eye(3))[0], weights):
            return close(weights.sum(), 1.0)
    return False


SCALE: dict[str, Tells] = {
    "no-scale": scaled_by(1.0),
    "scale-by-dk": scaled_by(1 / 16),
    "scale-multiplied": scaled_by(4.0, 16.0),
    "scale-by-sequence-length": scaled_by(5**-0.5, 3**-0.5, 1 / 5, 1 / 3),
    "scale-after-softmax": scaled_afterwards,
    "cosine-scores": cosine,
}
# With one head, the number of heads is 1, as is no scale, and d_model is d_k.
SCALE_OF_A_LAYER = {slug: tells for slug, tells in SCALE.items() if slug not in ("no-scale", "scale-by-dk")}
BATCHED_SCALE: dict[str, Tells] = {
    "scale-by-value-dim": scaled_by(7**-0.5, 1 / 7),
    "scale-by-axis-one": axis_one,
}


# --- the mask ----------------------------------------------------------------------------------------------


def hidden_score(head: Head, *scores: float) -> float:
    """The score of a hidden third key, computed from its weight; −inf if the weight is 0."""
    weights = head.row(scores, KEEP_TWO)
    close_by = close(weights[1] / weights[0], np.exp(scores[1] - scores[0]))
    return scores[1] + float(np.log(weights[2] / weights[1])) if close_by and weights[2] > 1e-15 else -np.inf


def fills(head: Head) -> Array:
    """The fill value of the hidden score in each of three rows, and the score before."""
    rows = [(-1.0, 2.0, 3.0), (-1.0, 2.0, 5.0), (-2.0, 2.0, 3.0)]
    return np.array([(hidden_score(head, *row), row[2]) for row in rows]).T  # (2, 3)


def filled_with_zero(head: Head) -> bool:
    """The fill value is 0, up to rounding."""
    return close(fills(head)[0], np.zeros(3)) and not filled_with_tiny(head)


def filled_with_tiny(head: Head) -> bool:
    """The fill value is a tiny number below 0, or the sum of the score and such a number."""
    filled, scores = fills(head)
    for numbers in (filled, filled - scores):
        tiny = bool((numbers > -1e-5).all() and (numbers < -1e-14).all())
        if tiny and np.allclose(numbers, numbers[0], rtol=0.01, atol=0):
            return True
    return False


def filled_with_smallest(head: Head) -> bool:
    """The fill value is the smallest score, or a little less."""
    filled, _ = fills(head)
    return close(np.diff(filled), [0.0, -1.0])


def one_added(head: Head) -> bool:
    """The kept scores are larger by 1."""
    filled, scores = fills(head)
    return close(filled - scores, np.full(3, -1.0))


def too_high(head: Head) -> bool:
    """The fill is a number that kept scores can reach; it replaces the hidden scores or is added to them."""
    filled, scores = fills(head)
    for numbers, below in ((filled, -0.5), (filled - scores, -1.5)):
        if np.isfinite(numbers).all() and numbers[0] < below and close(numbers, np.full(3, numbers[0])):
            return True
    if not close(head.row([1.0, 2.0, 3.0], KEEP_TWO), [*softmax(np.array([1.0, 2.0])), 0.0]):
        return False
    far_below, far_above = head.row([-2e4] * 3, KEEP_TWO), head.row([0.0, 0.0, 29.0], KEEP_TWO)
    return far_below[2] > 0.3 or far_above[2] > 1e-3


def without_effect(head: Head) -> bool:
    """With a mask, the weights are exactly those without one."""
    weights = three(head)
    return (
        close(weights, softmax(SHIFTS[0]))
        and bool((head.row([1.0, 2.0, 3.0], KEEP_TWO) == weights).all())
        and close(head.weights(np.zeros(3), np.zeros(3), LOWER), np.full((3, 3), 1 / 3))
    )


def turned_round(head: Head) -> bool:
    """Exactly the hidden keys get weight."""
    hidden, kept = head.row([1.0, 2.0, 3.0], KEEP_TWO), head.row([1.0, 2.0, 3.0], ~KEEP_TWO)
    return close(hidden[:2], [0.0, 0.0]) and hidden[2] > 0.01 and close(kept[2], 0.0) and kept[0] > 0.01


def removed_afterwards(head: Head) -> bool:
    """The kept weights are those without a mask, or none is finite as soon as the mask hides a key."""
    weights, before = head.row([1.0, 2.0, 3.0], KEEP_TWO), softmax(SHIFTS[0])
    if not np.isfinite(weights).any():
        return close(head.row([1.0, 2.0, 3.0], KEEP_TWO | True), before)
    return close(weights[:2], before[:2]) and not close(weights[2], before[2])


def adds_epsilon(head: Head) -> bool:
    """The weights are right, unless a hidden score lies far above the kept ones."""
    right = close(head.row([1.0, 2.0, 3.0], KEEP_TWO), [*softmax(np.array([1.0, 2.0])), 0.0])
    above = head.row([0.0, 0.0, 25.0], KEEP_TWO)
    return right and close(above[2], 0.0) and 0 <= above.sum() < 0.999


def mask_turned(head: Head) -> bool:
    """A causal mask hides what is earlier."""
    return close(head.weights(np.zeros(3), np.zeros(3), LOWER), LOWER.T / LOWER.T.sum(axis=1, keepdims=True))


def two_masks(head: Head, num_heads: int) -> Array:
    """The weights `(2, heads, 3)` where one sequence has no third key and the other has no first key."""
    mask = np.stack([KEEP_TWO, KEEP_TWO[:, ::-1]])[:, None].repeat(2, axis=2)  # (2, 1, 2, 3), for two queries
    return head.weights(np.zeros((2, num_heads, 2)), np.zeros((2, num_heads, 3)), mask)[:, :, 0]


def first_mask(head: Head) -> bool:
    """The second sequence has the first one's mask."""
    return close(two_masks(head, 3), np.broadcast_to([0.5, 0.5, 0.0], (2, 3, 3)))


def masks_on_heads(head: Head) -> bool:
    """Each head has another sequence's mask."""
    return close(two_masks(head, 2), np.broadcast_to([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], (2, 2, 3)))


MASK: dict[str, Tells] = {
    "masked-scores-zero": filled_with_zero,
    "mask-fill-tiny": filled_with_tiny,
    "mask-fill-with-smallest-score": filled_with_smallest,
    "mask-added-as-0-1": one_added,
    "mask-fill-not-negative-enough": too_high,
    "mask-no-effect": without_effect,
    "mask-inverted": turned_round,
    "mask-after-softmax": removed_afterwards,
    "epsilon-in-denominator": adds_epsilon,
    "mask-transposed": mask_turned,
}
# With one head, a mask that one head lacks has no effect.
MASK_OF_A_LAYER = {slug: tells for slug, tells in MASK.items() if slug != "mask-no-effect"}
MASK_FOR_EACH: dict[str, Tells] = {
    "first-mask-for-all-sequences": first_mask,
    "mask-batch-on-head-axis": masks_on_heads,
}


def always_causal(head: Head) -> bool:
    """Later keys are hidden when no mask is given."""
    lower = np.tri(4)
    return close(head.weights(np.zeros(4), np.zeros(4)), lower / lower.sum(axis=1, keepdims=True))


def mask_needed(head: Head) -> bool:
    """A mask that hides nothing gives the right weights; no mask gives an error about None, or nonsense."""
    if not close(head.row([1.0, 2.0, 3.0], np.ones((1, 3), dtype=bool)), softmax(SHIFTS[0])):
        return False
    try:
        weights = three(head)
    except Exception as error:
        return "NoneType" in str(error)
    return bool(np.isnan(weights).all()) or close(weights, np.full(3, 1 / 3))


NO_MASK: dict[str, Tells] = {"always-causal": always_causal, "none-not-handled": mask_needed}


# --- the axes ----------------------------------------------------------------------------------------------


def failing(head: Head) -> dict[int, str]:
    """The numbers of axes, from 2 to 5, that raise an error, and the message of each; none if a shape is wrong."""
    errors = {}
    for leading in ((), (2,), (2, 3), (2, 4, 3)):  # no axis of size 1, which somebody may drop
        Q, K = np.zeros((*leading, 5, 4)), np.zeros((*leading, 7, 4))
        try:
            output = np.asarray(head.attend(head.tested, Q, K, np.zeros((*leading, 7, 6)), None))
        except Exception as error:
            errors[Q.ndim] = str(error)
        else:
            if output.shape != (*leading, 5, 6):
                return {}
    return errors


def all_axes_turned(errors: Mapping[int, str]) -> bool:
    """Only matrices are right, and the message for three axes shows that the code reverses all axes."""
    return (
        errors.keys() == {3, 4, 5}
        and re.search(r"size 7 is|!= 7|only works on|<= 2D|2 dim", errors[3]) is not None
    )


def axes_turned(head: Head) -> bool:
    """All axes of the keys are reversed."""
    return all_axes_turned(failing(head))


def axes_counted(head: Head) -> bool:
    """Some numbers of axes are right, and others raise an error."""
    errors = failing(head)
    return 0 < len(errors) < 4 and not all_axes_turned(errors)


AXES: dict[str, Tells] = {"transpose-all-axes": axes_turned, "batch-axis-assumed": axes_counted}


def sums_without_axis(tested: Any, steps: Sequence[Any]) -> bool:
    """An error says that shapes `(…, n, m)` and `(…, n)` do not broadcast."""
    for step in steps:
        text = str(getattr(step, "error", None) or "")
        shapes = [re.findall(r"\d+", shape) for shape in re.findall(r"\(([\d, ]*)\)", text)]
        if "broadcast" in text and len(shapes) >= 2 and len(shapes[0]) > 1 and shapes[1] == shapes[0][:-1]:
            return True
    return False


# --- what is returned, and what is changed -------------------------------------------------------------------


def returns_before_softmax(tested: Any, steps: Sequence[Any]) -> bool:
    """The output is right, but the scores or their exponentials come with it."""
    K, V = np.array([[1.0], [2.0], [3.0]]), np.eye(3)
    output, second = tested(np.ones((1, 1)), K, V)
    spaced = close(np.diff(second), [[1.0, 1.0]]) or close(second[:, 1:] / second[:, :-1], [[np.e, np.e]])
    return close(output, [softmax(SHIFTS[0])]) and not close(second, output) and spaced


def returns_no_weights(tested: Any, steps: Sequence[Any]) -> bool:
    """The output is right but comes without weights: by itself, alone in a tuple, or with None."""
    result = tested(np.ones((1, 1)), np.array([[1.0], [2.0], [3.0]]), np.eye(3))
    output = result[0] if isinstance(result, tuple | list) else result
    alone = output is result or len(result) == 1 or result[1] is None
    return alone and close(output, [softmax(SHIFTS[0])])


def changes_only(right: Callable[..., Any]) -> Callable[[Any, Sequence[Any]], bool]:
    """A law: all results are right, and an argument is changed.

    Args:
        right: the right function; the law calls it with the arguments of the steps.
    """

    def of_part(tested: Any, steps: Sequence[Any]) -> bool:
        if not any(step.changed for step in steps):
            return False
        for step in steps:
            wanted, got = right(*step.request["args"], **step.request["kwargs"]), step.value
            pairs = zip(wanted, got, strict=True) if isinstance(wanted, tuple) else [(wanted, got)]
            if not all(close(one, other) for one, other in pairs):
                return False
        return True

    return of_part


# --- one head of a layer -----------------------------------------------------------------------------------


def embedded(Q: Array, K: Array, V: Array) -> tuple[Array, Array, list[Array]]:
    """Tokens for the queries, tokens for the keys, and weights that give one head these queries, keys and values.

    Token i is one-hot, so that row i of a weight is its query, key or value. The queries are multiplied by
    √(d_model / d_k), because a layer divides the scores by √d_model.

    Returns:
        `(1, n, d_model)`, `(1, m, d_model)` and W_Q, W_K, W_V and W_O, `(d_model, d_model)` each.
    """
    (n, d_k), (m, d_v) = Q.shape, V.shape
    width = max(n, m, d_k, d_v)
    weights = [np.zeros((width, width)) for _ in range(3)]
    for weight, rows in zip(weights, (Q * np.sqrt(width / d_k), K, V), strict=True):
        weight[: len(rows), : rows.shape[1]] = rows
    tokens = np.eye(width)[None]  # (1, width, width)
    return tokens[:, :n], tokens[:, :m], [*weights, np.eye(width)]


def in_layer(tested: Any, Q: Array, K: Array, V: Array, mask: Array | None = None) -> Array:
    """The output of `multi_head_attention` with one head, for at least as many keys as queries."""
    _, X, weights = embedded(Q, K, V)
    if mask is not None and len(mask) != len(K):
        mask = np.concatenate([mask, np.ones((len(K) - len(mask), len(K)), dtype=bool)])
    output = tested(X, *weights, 1) if mask is None else tested(X, *weights, 1, mask)  # (1, m, d_model)
    return np.asarray(output[0][: len(Q), : V.shape[1]])


def in_cross_layer(tested: Any, Q: Array, K: Array, V: Array, mask: Array | None = None) -> Array:
    """The output of `cross_attention` with one head."""
    X, memory, weights = embedded(Q, K, V)
    return np.asarray(tested(X, memory, *weights, 1)[0][:, : V.shape[1]])


# --- registering -------------------------------------------------------------------------------------------


def tell(item: str, head: Head, mistakes: Mapping[str, Tells], concerns: Callable[[Head, Any], bool]) -> None:
    """Register laws of an item. A law holds only for a part with a step that its mistake concerns."""
    for slug, tells in mistakes.items():

        def of_part(tested: Any, steps: Sequence[Any], tells: Tells = tells) -> bool:
            return tells(replace(head, tested=tested)) and any(concerns(head, step) for step in steps)

        law(slug, item)(of_part)


def anything(head: Head, step: Any) -> bool:
    """Every step counts."""
    return True


def rows(head: Head, step: Any) -> bool:
    """There are several rows of scores, or the step does not show its scores."""
    scores = head.scores(step)
    return scores is None or (scores.ndim > 1 and scores.shape[-2] > 1)


def large(head: Head, step: Any) -> bool:
    """Some scores are too large for the exponential, or the step does not show its scores."""
    scores = head.scores(step)
    return scores is None or bool(np.abs(scores).max(initial=0.0) > PAST_EXP)


def masked(head: Head, step: Any) -> bool:
    """There is a mask."""
    return head.mask(step) is not None


def unmasked(head: Head, step: Any) -> bool:
    """There is no mask."""
    return head.mask(step) is None


def masked_each(head: Head, step: Any) -> bool:
    """There is a mask for each sequence."""
    mask = head.mask(step)
    return mask is not None and np.ndim(mask) != 2 and len(mask) != 1


def wide(head: Head, step: Any) -> bool:
    """Queries have more than one feature."""
    Q = given(step, 0, "Q")
    return Q is None or Q.shape[-1] > 1


def batched(head: Head, step: Any) -> bool:
    """There are more axes than two."""
    Q = given(step, 0, "Q")
    return Q is None or Q.ndim > 2


def tell_all(item: str, head: Head) -> None:
    """Register all laws of an item that is attention with any number of axes."""
    tell(item, head, SOFTMAX | OF_A_HEAD, anything)
    tell(item, head, SEVERAL_ROWS, rows)
    tell(item, head, {"softmax-over-heads": over_heads} | AXES, batched)
    tell(item, head, LARGE, large)
    tell(item, head, SCALE | BATCHED_SCALE, wide)
    tell(item, head, MASK, masked)
    tell(item, head, MASK_FOR_EACH, masked_each)
    tell(item, head, NO_MASK, unmasked)
