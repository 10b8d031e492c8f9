"""Mistakes in `split_heads`."""

import numpy as np

from mha_lib.pitfalls.code import mistake

Array = np.ndarray


@mistake("split-without-transpose", "multi_head.split_heads")
def split_heads_without_transpose(x: Array, num_heads: int) -> Array:
    """Wrong: reshaped to the right shape at once, so that a head gets whole tokens, cut up."""
    batch, n, d_model = x.shape
    return x.reshape(batch, num_heads, n, d_model // num_heads)  # (batch, heads, n, d_k)


@mistake("heads-interleaved", "multi_head.split_heads")
def split_heads_interleaved(x: Array, num_heads: int) -> Array:
    """Wrong: head i gets the columns i, i + heads, i + 2 * heads, …"""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, d_model // num_heads, num_heads)  # (batch, n, d_k, heads)
    return x.transpose(0, 3, 1, 2)  # (batch, heads, n, d_k)


@mistake("head-axis-not-moved", "multi_head.split_heads")
def split_heads_axis_not_moved(x: Array, num_heads: int) -> Array:
    """Wrong: the axis of the heads stays behind that of the tokens."""
    batch, n, d_model = x.shape
    return x.reshape(batch, n, num_heads, d_model // num_heads)  # (batch, n, heads, d_k)


@mistake("batch-and-heads-swapped", "multi_head.split_heads")
def split_heads_batch_and_heads_swapped(x: Array, num_heads: int) -> Array:
    """Wrong: the heads come first, before the batch."""
    return np.stack(np.split(x, num_heads, axis=-1))  # (heads, batch, n, d_k)


@mistake("features-before-tokens", "multi_head.split_heads")
def split_heads_features_first(x: Array, num_heads: int) -> Array:
    """Wrong: the last two axes are exchanged."""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, num_heads, d_model // num_heads)  # (batch, n, heads, d_k)
    return x.transpose(0, 2, 3, 1)  # (batch, heads, d_k, n)


@mistake("head-count-taken-as-width", "multi_head.split_heads")
def split_heads_count_taken_as_width(x: Array, num_heads: int) -> Array:
    """Wrong: `num_heads` is taken for the width of a head."""
    batch, n, d_model = x.shape
    x = x.reshape(batch, n, d_model // num_heads, num_heads)  # (batch, n, d_k, heads)
    return x.transpose(0, 2, 1, 3)  # (batch, d_k, n, heads)


@mistake("features-not-split", "multi_head.split_heads")
def split_heads_features_not_split(x: Array, num_heads: int) -> Array:
    """Wrong: every head gets all features."""
    return np.repeat(x[:, None], num_heads, axis=1)  # (batch, heads, n, d_model)


@mistake("tokens-split-in-place-of-features", "multi_head.split_heads")
def split_heads_tokens_split(x: Array, num_heads: int) -> Array:
    """Wrong: the tokens are shared out, not the features."""
    return np.stack(np.array_split(x, num_heads, axis=1), axis=1)  # (batch, heads, n / heads, d_model)


@mistake("divisibility-unchecked", "multi_head.split_heads")
def split_heads_unchecked(x: Array, num_heads: int) -> Array:
    """Wrong: features that are left over are dropped without a word."""
    d_k = x.shape[-1] // num_heads
    heads = [x[..., i * d_k : (i + 1) * d_k] for i in range(num_heads)]  # each (batch, n, d_k)
    return np.stack(heads, axis=1)  # (batch, heads, n, d_k)


@mistake("heads-in-reverse", "multi_head.split_heads")
def split_heads_in_reverse(x: Array, num_heads: int) -> Array:
    """Wrong: the last block of features makes the first head."""
    heads = np.split(x, num_heads, axis=-1)  # each (batch, n, d_k)
    return np.stack(heads[::-1], axis=1)  # (batch, heads, n, d_k)


@mistake("axes-of-one-dropped", "multi_head.split_heads")
def split_heads_squeezed(x: Array, num_heads: int) -> Array:
    """Wrong: `squeeze` drops every axis of size 1."""
    return np.squeeze(np.stack(np.split(x, num_heads, axis=-1), axis=1))


@mistake("input-changed-in-place", "multi_head.split_heads")
def split_heads_in_place(x: Array, num_heads: int) -> Array:
    """Wrong: the heads are written into the caller's memory."""
    heads = np.stack(np.split(x, num_heads, axis=-1), axis=1)  # (batch, heads, n, d_k)
    result = x.reshape(heads.shape)  # another view of x
    result[...] = heads
    return result


# --- other forms -------------------------------------------------------------------------------------------


@mistake("split-without-transpose", "multi_head.split_heads", form="tokens-last")
def split_heads_tokens_last(x: Array, num_heads: int) -> Array:
    """Wrong: reshaped with the tokens last, which are then brought to their place."""
    batch, n, d_model = x.shape
    return np.swapaxes(x.reshape(batch, num_heads, d_model // num_heads, n), -2, -1)


@mistake("split-without-transpose", "multi_head.split_heads", form="features-first")
def split_heads_transposed_before(x: Array, num_heads: int) -> Array:
    """Wrong: tokens and features are exchanged before the reshape."""
    batch, n, d_model = x.shape
    return np.swapaxes(x, 1, 2).reshape(batch, num_heads, n, d_model // num_heads)


@mistake("split-without-transpose", "multi_head.split_heads", form="heads-first")
def split_heads_reshaped_heads_first(x: Array, num_heads: int) -> Array:
    """Wrong: reshaped with the heads first, which are then exchanged with the batch."""
    batch, n, d_model = x.shape
    return np.swapaxes(x.reshape(num_heads, batch, n, d_model // num_heads), 0, 1)


@mistake("split-without-transpose", "multi_head.split_heads", form="features-before-tokens")
def split_heads_width_before_tokens(x: Array, num_heads: int) -> Array:
    """Wrong: reshaped to the width before the tokens; heads and width are then exchanged."""
    batch, n, d_model = x.shape
    x = x.reshape(batch, d_model // num_heads, n, num_heads)
    return x.transpose(0, 3, 2, 1)


@mistake("head-axis-not-moved", "multi_head.split_heads", form="last")
def split_heads_axis_last(x: Array, num_heads: int) -> Array:
    """Wrong: the axis of the heads comes last."""
    return np.stack(np.split(x, num_heads, axis=-1), axis=-1)


@mistake("features-not-split", "multi_head.split_heads", form="zeros")
def split_heads_rest_zero(x: Array, num_heads: int) -> Array:
    """Wrong: every head is as wide as the model, with zeros where others have their features."""
    owner = np.arange(x.shape[-1]) * num_heads // x.shape[-1]  # (d_model,): whose feature it is
    own = owner == np.arange(num_heads)[:, None, None]  # (heads, 1, d_model)
    return x[:, None] * own


@mistake("tokens-split-in-place-of-features", "multi_head.split_heads", form="reshape")
def split_heads_tokens_reshaped(x: Array, num_heads: int) -> Array:
    """Wrong: the tokens are shared out by a reshape."""
    batch, n, d_model = x.shape
    return x.reshape(batch, num_heads, n // num_heads, d_model)


@mistake("tokens-split-in-place-of-features", "multi_head.split_heads", form="split")
def split_heads_tokens_split_evenly(x: Array, num_heads: int) -> Array:
    """Wrong: the tokens are shared out, if that is possible."""
    return np.stack(np.split(x, num_heads, axis=1), axis=1)


@mistake("divisibility-unchecked", "multi_head.split_heads", form="padded")
def split_heads_padded(x: Array, num_heads: int) -> Array:
    """Wrong: missing features are filled up with zeros."""
    missing = -x.shape[-1] % num_heads
    x = np.pad(x, [(0, 0), (0, 0), (0, missing)])
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


@mistake("error-not-raised", "multi_head.split_heads", form="none")
def split_heads_none(x: Array, num_heads: int) -> Array | None:
    """Wrong: None comes back where an error should be raised."""
    if x.shape[-1] % num_heads != 0:
        return None
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


@mistake("same-columns-for-every-head", "multi_head.split_heads", form="features")
def split_heads_first_features(x: Array, num_heads: int) -> Array:
    """Wrong: every head gets the first features."""
    d_model = x.shape[-1]
    if d_model % num_heads != 0:
        raise ValueError(f"{d_model=} cannot be divided among {num_heads=}")
    return np.repeat(x[:, None, :, : d_model // num_heads], num_heads, axis=1)


@mistake("divisibility-unchecked", "multi_head.split_heads", form="batch-of-any-size")
def split_heads_batch_of_any_size(x: Array, num_heads: int) -> Array:
    """Wrong: what is left over makes more sequences, if it is enough for that."""
    _, n, d_model = x.shape
    return x.reshape(-1, n, num_heads, d_model // num_heads).transpose(0, 2, 1, 3)


@mistake("divisibility-unchecked", "multi_head.split_heads", form="width-asked")
def split_heads_width_asked(x: Array, num_heads: int) -> Array:
    """Wrong: what divides the features is asked of the width, not of the number of heads."""
    d_k = x.shape[-1] // num_heads
    if x.shape[-1] % d_k:
        raise ValueError(f"{x.shape[-1]} features cannot be divided among {num_heads=}")
    return np.stack([x[..., i * d_k : (i + 1) * d_k] for i in range(num_heads)], axis=1)


@mistake("divisibility-unchecked", "multi_head.split_heads", form="more-heads-than-features")
def split_heads_more_heads_unchecked(x: Array, num_heads: int) -> Array:
    """Wrong: if there are more heads than features, they are left without any."""
    d_k, rest = divmod(x.shape[-1], num_heads)
    if d_k and rest:
        raise ValueError(f"{x.shape[-1]} features cannot be divided among {num_heads=}")
    return np.stack([x[..., i * d_k : (i + 1) * d_k] for i in range(num_heads)], axis=1)


@mistake("error-not-raised", "multi_head.split_heads", form="returned")
def split_heads_error_returned(x: Array, num_heads: int) -> Array | ValueError:
    """Wrong: the error comes back where it should be raised."""
    if x.shape[-1] % num_heads != 0:
        return ValueError(f"{x.shape[-1]} features cannot be divided among {num_heads=}")
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)


@mistake("axes-of-one-dropped", "multi_head.split_heads", form="one-head")
def split_heads_one_head_without_an_axis(x: Array, num_heads: int) -> Array:
    """Wrong: a single head gets no axis of its own."""
    return x if num_heads == 1 else np.stack(np.split(x, num_heads, axis=-1), axis=1)


@mistake("input-changed-in-place", "multi_head.split_heads", form="shape")
def split_heads_shape_in_place(x: Array, num_heads: int) -> Array:
    """Wrong: the caller's array gets another shape."""
    batch, n, d_model = x.shape
    x.shape = (batch, n, num_heads, d_model // num_heads)
    return x.transpose(0, 2, 1, 3)  # (batch, heads, n, d_k)
