"""Checks that tell a right function from a wrong one, written to be read (NumPy).

Each takes a candidate and returns None if it is right; otherwise it raises an `AssertionError` that says what
was wrong. It calls the candidate only with inputs that the candidate's contract allows, accepts every right
way of writing it, and compares with values that are computed the slow and obvious way.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np


def check_attention(candidate: Callable[..., Any]) -> None:
    """Raise an error unless `candidate(Q, K, V, mask=None)` is scaled dot-product attention.

    Call it only with what its contract allows, and pass the mask by position or by name. Accept every correct
    style: loops, another order of operations, or single precision inside. So compare with a
    tolerance: 1e-5 if no score q·k/√d_k, masked or not, is above 10 in absolute value; 1e-2 with larger scores. For
    the output, multiply this by v / 5 if the largest absolute value v is above 5. Pass float64 arrays, and do not
    compare dtypes. The pair may be a tuple or a list.

    Args:
        candidate: takes Q `(..., n, d_k)`, K `(..., m, d_k)` and V `(..., m, d_v)`, all with the same leading axes
            (any number of them), and a mask. The mask is None or boolean, True = may attend: `(n, m)` or
            `(batch, 1, n, m)` (padding: `(batch, 1, 1, m)`), not `(batch, n, m)`; if Q has two or three axes,
            it is `(n, m)`; with five or more, there is none. Every query keeps at least one key. Scores are
            finite; no masked score exceeds the largest kept score of its row by more than 30; kept scores may
            be in the thousands, thousands apart in one row, and as low as -20,000 for a whole row. It returns the
            output `(..., n, d_v)` and the weights `(..., n, m)`.

    Returns:
        None if it is right. A returned False rejects nothing.

    Raises:
        AssertionError: if it is wrong: a shape, a value, weights, or an argument that it changed. (Any
            exception rejects it.)
    """

    def expected_of(
        Q: np.ndarray, K: np.ndarray, V: np.ndarray, allowed: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        output, weights = np.zeros((*Q.shape[:-1], V.shape[-1])), np.zeros(allowed.shape)
        for *lead, i in np.ndindex(Q.shape[:-1]):  # one query at a time
            place = tuple(lead)
            keys = np.flatnonzero(allowed[place][i])
            scores = K[place][keys] @ Q[place][i] / np.sqrt(Q.shape[-1])  # (kept keys,)
            exponentials = np.exp(scores - scores.max())
            weights[place][i, keys] = exponentials / exponentials.sum()
            output[place][i] = weights[place][i] @ V[place]
        return output, weights

    rng = np.random.default_rng(1)
    # All sizes differ, some are 1, and there are no, one and two leading dimensions.
    for lead, n, m, d_k, d_v in [
        ((1,), 1, 3, 4, 1),
        ((), 3, 5, 4, 2),
        ((), 6, 4, 3, 5),
        ((2,), 4, 7, 6, 3),
        ((2, 3), 5, 4, 7, 6),
    ]:
        masks: list[Any] = [None, rng.random((n, m)) < 0.5, np.tri(n, m, dtype=bool)]
        if len(lead) == 2:  # a mask for each sequence, and padding
            masks += [rng.random((lead[0], 1, n, m)) < 0.5, rng.random((lead[0], 1, 1, m)) < 0.5]
        for mask in masks:
            if mask is not None:
                mask[..., 0] = True  # every query keeps a key
            # The last features shift all scores of a query: up to overflow, and down below common fill values.
            for shifts, tolerance in [([0.0], 1e-5), ([1000.0, -1000.0, 0.0, -20000.0], 1e-2)]:
                Q, K = rng.normal(size=(*lead, n, d_k)), rng.normal(size=(*lead, m, d_k))
                V = rng.normal(size=(*lead, m, d_v))
                K[..., -1], Q[..., -1] = 1.0, np.resize(shifts, n) * np.sqrt(d_k)
                if mask is None and tolerance > 1e-5:
                    Q[..., :-1] *= 1000.0  # the scores of one query lie thousands apart
                elif mask is not None and not mask[..., -1].any() and tolerance == 1e-5:
                    K[..., -1, -1], Q[..., -1] = (
                        25.0,
                        np.sqrt(d_k),
                    )  # a hidden key fits far better than the others
                arguments: list[Any] = [Q, K, V, mask]
                copies = deepcopy(arguments)
                result = candidate(Q, K, V) if mask is None else candidate(Q, K, V, mask)
                allowed = np.broadcast_to(True if mask is None else copies[3], (*lead, n, m))
                rights = expected_of(copies[0], copies[1], copies[2], allowed)
                for got, right in zip(result, rights, strict=True):
                    assert got.shape == right.shape, f"shape {got.shape} where {right.shape} is right"
                    assert np.abs(got - right).max() <= tolerance, f"off by {np.abs(got - right).max()}"
                for array, copy in zip(arguments, copies, strict=True):
                    assert np.array_equal(array, copy), "an argument was changed in place"


def check_split_heads(candidate: Callable[..., Any]) -> None:
    """Raise an error unless `candidate(x, num_heads)` gives each head its own block of features.

    Call it only with what its contract allows, and accept every correct style. Pass float64 arrays, and do not
    compare dtypes.

    Args:
        candidate: takes x `(batch, n, d_model)` and a positive number of heads; returns
            `(batch, heads, n, d_k)`, head i with the features `i*d_k … (i+1)*d_k - 1`. It raises an error of
            any kind if the heads do not divide d_model, even if there are more heads than features.

    Returns:
        None if it is right.

    Raises:
        AssertionError: if it is wrong: a shape, a value, a missing error, or an argument that it changed. (Any
            exception rejects it.)
    """
    rng = np.random.default_rng(2)
    for batch, n, d_model, num_heads in [
        (2, 3, 20, 4),
        (3, 5, 6, 2),
        (1, 2, 6, 6),
        (4, 7, 5, 1),
        (3, 3, 9, 3),
    ]:
        x = rng.normal(size=(batch, n, d_model))
        copy, d_k = x.copy(), d_model // num_heads
        got = candidate(x, num_heads)
        assert got.shape == (batch, num_heads, n, d_k), f"shape {got.shape}"
        for head in range(num_heads):
            block = copy[:, :, head * d_k : (head + 1) * d_k]  # (batch, n, d_k)
            assert np.abs(got[:, head] - block).max() <= 1e-5, f"head {head} has other features than its own"
        assert np.array_equal(x, copy), "the argument was changed in place"
    for d_model, num_heads in [(7, 2), (6, 4), (4, 8)]:
        try:
            candidate(np.zeros((2, num_heads, d_model)), num_heads)
        except Exception:
            continue  # any error will do
        raise AssertionError(f"d_model={d_model} was divided among num_heads={num_heads}")


def check_multi_head_attention(candidate: Callable[..., Any]) -> None:
    """Raise an error unless `candidate(X, W_Q, W_K, W_V, W_O, num_heads, mask=None)` is multi-head attention.

    Call it only with what its contract allows, and accept every correct style. What `check_attention` says of
    tolerances, dtypes and scores holds here as well, in every head: kept scores thousands apart, as low as
    -20,000, and masked ones up to 30 above the largest kept score of their row. v is the largest absolute value of
    X @ W_V and of the output.

    Args:
        candidate: takes X `(batch, n, d_model)`, four weights `(d_model, d_model)` that are used as `X @ W`,
            the number of heads, which divides d_model, and a mask, as in `multi_head_attention`: None or
            boolean, True = may attend, `(n, n)` or `(batch, 1, n, n)` (padding: `(batch, 1, 1, n)`), no other
            shape; every query has at least one key. Head i owns the columns
            `i*d_k … (i+1)*d_k - 1` of the projections; the heads are concatenated and multiplied by `W_O`. It
            returns the output `(batch, n, d_model)` alone.

    Returns:
        None if it is right.

    Raises:
        AssertionError: if it is wrong: a shape, a value, or an argument that it changed. (Any exception rejects
            it.)
    """

    def expected_of(
        X: np.ndarray, weights: list[np.ndarray], num_heads: int, allowed: np.ndarray
    ) -> np.ndarray:
        W_Q, W_K, W_V, W_O = weights
        batch, n, d_model = X.shape
        d_k = d_model // num_heads
        output = np.zeros(X.shape)
        for b, head, i in np.ndindex(batch, num_heads, n):  # one query of one head at a time
            own = slice(head * d_k, (head + 1) * d_k)
            scores = (X[b] @ W_K[:, own]) @ (X[b, i] @ W_Q[:, own]) / np.sqrt(d_k)  # (n,)
            exponentials = np.where(allowed[b, i], np.exp(scores - scores[allowed[b, i]].max()), 0.0)
            mixed = exponentials / exponentials.sum() @ (X[b] @ W_V[:, own])  # (d_k,)
            output[b, i] += mixed @ W_O[own]  # the head's own rows of W_O
        return output

    rng = np.random.default_rng(3)
    for batch, n, d_model, num_heads in [
        (2, 5, 12, 3),
        (3, 4, 6, 2),
        (1, 3, 4, 4),
        (2, 6, 5, 1),
        (3, 3, 9, 3),
    ]:
        d_k = d_model // num_heads
        masks: list[Any] = [None, np.tri(n, dtype=bool), rng.random((batch, 1, n, n)) < 0.5]
        for mask in masks:
            if mask is not None:
                mask[..., 0] = True  # every query keeps a key
            for shifted in (False, True):
                X = rng.normal(size=(batch, n, d_model))
                W_Q, W_K, W_V, W_O = rng.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)
                if shifted:  # feature 0 is 1, and feature 1 shifts all scores of its token's query
                    X[..., 0], X[..., 1] = 1.0, np.resize([1000.0, -1000.0, 0.0, -20000.0], n)
                    W_Q[1] = W_K[1] = W_V[1] = 0.0
                    W_Q[:, d_k - 1 :: d_k] = W_K[:, d_k - 1 :: d_k] = 0.0
                    W_Q[1, d_k - 1 :: d_k], W_K[0, d_k - 1 :: d_k] = np.sqrt(d_k), 1.0
                elif (
                    mask is not None and mask.ndim == 4 and d_k > 1
                ):  # the last token, hidden, has scores of 25
                    mask[..., -1], X[..., 0], X[..., 1] = False, 1.0, 25.0 * (np.arange(n) == n - 1)
                    W_Q[:, d_k - 1 :: d_k] = W_K[:, d_k - 1 :: d_k] = W_Q[1] = W_K[1] = W_V[1] = 0.0
                    W_Q[0, d_k - 1 :: d_k], W_K[1, d_k - 1 :: d_k] = np.sqrt(d_k), 1.0
                weights = [W_Q, W_K, W_V, W_O]
                arguments: list[Any] = [X, *weights, mask]
                copies = deepcopy(arguments)
                got = (
                    candidate(X, *weights, num_heads)
                    if mask is None
                    else candidate(X, *weights, num_heads, mask)
                )
                three_axes = np.ones((n, n), bool) if mask is None else copies[5].reshape(-1, n, n)
                right = expected_of(
                    copies[0], copies[1:5], num_heads, np.broadcast_to(three_axes, (batch, n, n))
                )
                tolerance = 1e-2 if shifted else 1e-5
                assert got.shape == right.shape, f"shape {got.shape} where {right.shape} is right"
                assert np.abs(got - right).max() <= tolerance, f"off by {np.abs(got - right).max()}"
                for array, copy in zip(arguments, copies, strict=True):
                    assert np.array_equal(array, copy), "an argument was changed in place"
