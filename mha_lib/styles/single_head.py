"""Right ways of writing the items of `single_head`; some of them look wrong at first."""

import numpy as np
from scipy import special

from mha_lib.styles import style

Array = np.ndarray


@style("one slice at a time", "single_head.softmax")
def softmax_one_slice_at_a_time(x: Array, axis: int = -1) -> Array:
    """Each one-dimensional slice by itself."""

    def one(row: Array) -> Array:
        exponentials = np.exp(row - row.max())
        return exponentials / exponentials.sum()

    return np.apply_along_axis(one, axis, np.asarray(x, float))


@style("by logarithm", "single_head.softmax")
def softmax_by_logarithm(x: Array, axis: int = -1) -> Array:
    """The exponential of x − log Σ exp x, with a stable sum."""
    return np.exp(x - special.logsumexp(x, axis=axis, keepdims=True))


@style("of scipy", "single_head.softmax")
def softmax_of_scipy(x: Array, axis: int = -1) -> Array:
    """Somebody else's; right, and an instructor may want to look at it."""
    return special.softmax(x, axis=axis)


@style("in float32", "single_head.softmax")
def softmax_in_float32(x: Array, axis: int = -1) -> Array:
    """In single precision, which the tolerance allows."""
    x = np.asarray(x, np.float32)
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


@style("on a moved axis", "single_head.softmax")
def softmax_on_a_moved_axis(x: Array, axis: int = -1) -> Array:
    """The axis is moved to the end and back."""
    moved = np.moveaxis(x, axis, -1)
    exponentials = np.exp(moved - moved.max(-1)[..., None])
    return np.moveaxis(exponentials / exponentials.sum(-1)[..., None], -1, axis)


@style("in long double", "single_head.softmax")
def softmax_in_long_double(x: Array, axis: int = -1) -> Array:
    """In extended precision where there is one, returned in double."""
    wide = np.asarray(x, np.longdouble)
    exponentials = np.exp(wide - np.max(wide, axis, keepdims=True))
    return np.divide(exponentials, exponentials.sum(axis, keepdims=True)).astype(np.float64)


@style("keys first", "single_head.attention")
def attention_keys_first(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """K·Qᵀ with the softmax over axis −2, transposed at the end."""
    scores = K @ np.swapaxes(Q, -2, -1) / np.sqrt(K.shape[-1])  # (..., m, n)
    if mask is not None:
        scores = np.where(
            np.swapaxes(np.broadcast_to(mask, np.swapaxes(scores, -2, -1).shape), -2, -1), scores, -np.inf
        )
    scores = scores - scores.max(axis=-2, keepdims=True)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-2, keepdims=True)  # (..., m, n)
    weights = np.swapaxes(weights, -2, -1)  # (..., n, m)
    return weights @ V, weights


@style("masked after the softmax, renormalised", "single_head.attention")
def attention_masked_and_renormalised(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The mask comes after the softmax, and then the rows are made to sum to 1 again."""
    scores = np.einsum("...nd,...md->...nm", Q, K) / Q.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdims=True)
    return weights @ V, weights


@style("fourth root on both", "single_head.attention")
def attention_fourth_root_on_both(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """d_k^(−1/4) on Q and on K."""
    root = Q.shape[-1] ** -0.25
    scores = (Q * root) @ np.swapaxes(K * root, -2, -1)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax_by_logarithm(scores)
    return weights @ V, weights


@style("softmax in float32", "single_head.attention")
def attention_in_float32(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """The softmax in single precision inside a double precision answer."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = softmax_in_float32(scores).astype(np.float64)
    return weights @ V, weights


@style("returned in float32", "single_head.attention")
def attention_returned_in_float32(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Both results in single precision: the dtype is not said anywhere."""
    output, weights = attention_fourth_root_on_both(Q, K, V, mask)
    return output.astype(np.float32), weights.astype(np.float32)


@style("by loops", "single_head.attention")
def attention_by_loops(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """One query at a time, over every leading index."""
    leading, (n, d_k), m = Q.shape[:-2], Q.shape[-2:], K.shape[-2]
    allowed = np.ones((*leading, n, m), bool) if mask is None else np.broadcast_to(mask, (*leading, n, m))
    output, weights = np.zeros((*leading, n, V.shape[-1])), np.zeros((*leading, n, m))
    for index in np.ndindex(*leading):
        for i in range(n):
            keys = np.flatnonzero(allowed[index][i])
            scores = np.array([Q[index][i] @ K[index][j] / np.sqrt(d_k) for j in keys])
            exponentials = np.exp(scores - scores.max())
            weights[index][i, keys] = exponentials / exponentials.sum()
            output[index][i] = sum(weights[index][i, j] * V[index][j] for j in keys)
    return output, weights


@style("scores overwritten", "single_head.attention")
def attention_scores_set_to_minus_infinity(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The scores, a new array, are overwritten in place."""
    scores = np.matmul(Q, K.swapaxes(-1, -2))
    scores /= np.sqrt(Q.shape[-1])
    if mask is not None:
        scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ V, scores


@style("large finite fill", "single_head.attention")
def attention_with_a_large_finite_fill(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """−1e9 in place of −∞: no score that the contract allows comes near it."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = special.softmax(scores, axis=-1)
    return weights @ V, weights


@style("added mask", "single_head.attention")
def attention_with_an_added_mask(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The mask as a bias of 0 and −∞."""
    bias = 0.0 if mask is None else np.where(mask, 0.0, -np.inf)
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1]) + bias
    weights = softmax_by_logarithm(scores)
    return np.einsum("...nm,...mv->...nv", weights, V), weights


@style("online", "single_head.attention")
def attention_online(Q: Array, K: Array, V: Array, mask: Array | None = None) -> tuple[Array, Array]:
    """Keys come in tiles of two, with a running maximum and a running sum."""
    scores = Q @ np.swapaxes(K, -2, -1) / np.sqrt(Q.shape[-1])
    allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
    largest = np.full((*scores.shape[:-1], 1), -np.inf)
    total = np.zeros_like(largest)
    output = np.zeros((*scores.shape[:-1], V.shape[-1]))
    for start in range(0, K.shape[-2], 2):
        tile = np.where(allowed, scores, -np.inf)[..., start : start + 2]
        new = np.maximum(largest, tile.max(-1, keepdims=True))
        safe = np.where(np.isfinite(new), new, 0.0)
        rescale = np.exp(largest - safe)
        exponentials = np.exp(tile - safe)
        total = total * rescale + exponentials.sum(-1, keepdims=True)
        output = output * rescale + exponentials @ V[..., start : start + 2, :]
        largest = new
    weights = np.where(allowed, np.exp(scores - largest), 0.0) / total
    return output / total, weights


@style("a list of two", "single_head.attention")
def attention_as_a_list(Q: Array, K: Array, V: Array, mask: Array | None = None) -> list[Array]:
    """Output and weights in a list in place of a tuple."""
    return list(attention_with_an_added_mask(Q, K, V, mask))


@style("lower triangle", "single_head.causal_mask")
def causal_mask_lower_triangle(n: int, m: int | None = None) -> Array:
    """`tril` with the diagonal moved by m − n."""
    m = n if m is None else m
    return np.tril(np.ones((n, m), dtype=bool), m - n)


@style("by loops", "single_head.causal_mask")
def causal_mask_by_loops(n: int, m: int | None = None) -> Array:
    """Entry by entry."""
    columns = m or n
    return np.array([[j <= i + columns - n for j in range(columns)] for i in range(n)])


@style("not upper", "single_head.causal_mask")
def causal_mask_not_upper(n: int, m: int | None = None) -> Array:
    """Everything that is not above the diagonal."""
    m = n if m is None else m
    return ~np.triu(np.ones((n, m)), 1 + m - n).astype(bool)


@style("last rows", "single_head.causal_mask")
def causal_mask_last_rows(n: int, m: int | None = None) -> Array:
    """The last n rows of the square mask."""
    m = n if m is None else m
    return np.tri(m, dtype=bool)[m - n :]


@style("by loops", "single_head.padding_mask")
def padding_mask_by_loops(lengths: Array, max_len: int) -> Array:
    """Sequence by sequence."""
    mask = np.zeros((len(lengths), 1, 1, max_len), dtype=bool)
    for row, length in zip(mask, lengths, strict=True):
        row[0, 0, :length] = True
    return mask


@style("reshaped", "single_head.padding_mask")
def padding_mask_reshaped(lengths: Array, max_len: int) -> Array:
    """A table of two axes, then two more."""
    table = np.less.outer(np.arange(max_len), np.asarray(lengths)).T
    return table.reshape(-1, 1, 1, max_len)


@style("cumulated", "single_head.padding_mask")
def padding_mask_cumulated(lengths: Array, max_len: int) -> Array:
    """Counting the places."""
    places = np.cumsum(np.ones((len(lengths), max_len), int), axis=1)
    return np.expand_dims(places <= np.asarray(lengths).reshape(-1, 1), (1, 2))


@style("multiplied", "single_head.decoder_mask")
def decoder_mask_multiplied(n: int, keep: Array | None = None) -> Array:
    """The product of two masks is their conjunction."""
    causal = np.tri(n).astype(bool)[None, None]
    return causal if keep is None else causal * np.asarray(keep)[:, None, None, :]


@style("by loops", "single_head.decoder_mask")
def decoder_mask_by_loops(n: int, keep: Array | None = None) -> Array:
    """One sequence at a time."""
    if keep is None:
        return np.tri(n, dtype=bool)
    masks = [[[bool(j <= i and row[j]) for j in range(n)] for i in range(n)] for row in keep]
    return np.array(masks)[:, np.newaxis]


@style("columns erased", "single_head.decoder_mask")
def decoder_mask_columns_erased(n: int, keep: Array | None = None) -> Array:
    """Columns of padding are set to False."""
    batch = 1 if keep is None else len(keep)
    mask = np.broadcast_to(np.tri(n, dtype=bool), (batch, 1, n, n)).copy()
    if keep is not None:
        sequence, column = np.nonzero(~keep)
        mask[sequence, :, :, column] = False
    return mask


# --- a function that refuses what its contract does not allow: so a check of it must keep to that ------------


@style("contract checked", "single_head.attention")
def attention_contract_checked(
    Q: Array, K: Array, V: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The arguments are looked at first, and anything other than what is allowed is an error."""
    n, m = Q.shape[-2], K.shape[-2]
    leading = {array.shape[:-2] for array in (Q, K, V)}
    if (
        len(leading) > 1
        or Q.shape[-1] != K.shape[-1]
        or V.shape[-2] != m
        or 0 in (*Q.shape, *K.shape, *V.shape)
    ):
        raise ValueError(f"shapes that do not fit: {Q.shape}, {K.shape}, {V.shape}")
    if any(array.dtype != np.float64 for array in (Q, K, V)):
        raise TypeError("not all arrays are of dtype float64")
    scores = np.einsum("...nd,...md->...nm", Q, K) / np.sqrt(Q.shape[-1])
    if not np.isfinite(scores).all():
        raise ValueError("scores should be finite")
    if mask is not None:
        refuse_mask(mask, scores, Q.ndim, n, m)
        scores = np.where(mask, scores, -np.inf)
    weights = softmax_by_logarithm(scores)
    return weights @ V, weights


def refuse_mask(mask: Array, scores: Array, ndim: int, n: int, m: int) -> None:
    """Raise an error unless the contract of `attention` allows the mask, beside these scores."""
    for_each = {(scores.shape[0], 1, n, m), (scores.shape[0], 1, 1, m)} if ndim == 4 else set()
    if ndim > 4 or mask.shape not in {(n, m)} | for_each:
        raise ValueError(f"a mask of shape {mask.shape} beside scores of shape {scores.shape}")
    if mask.dtype != bool:
        raise TypeError(f"a mask of dtype {mask.dtype}")
    if not mask.any(axis=-1).all():
        raise ValueError("a query that may attend to nothing")
    kept = np.where(mask, scores, -np.inf).max(axis=-1, keepdims=True)
    if (np.where(mask, -np.inf, scores) > kept + 31).any() or (kept < -2.2e4).any():
        raise ValueError("masked scores too far above the kept ones, or kept ones too low")
