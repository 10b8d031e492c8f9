"""Mistakes in `kv_cache_bytes`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mha_lib.pitfalls.code import mistake


@mistake("cache-bytes-keys-only", "efficient_heads.kv_cache_bytes")
def cache_bytes_keys_only(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: keys are counted, values are not."""
    return batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


@mistake("cache-bytes-with-queries", "efficient_heads.kv_cache_bytes")
def cache_bytes_with_queries(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: queries are counted too, but nobody needs those of earlier tokens."""
    return 3 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


@mistake("cache-bytes-of-one-layer", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_one_layer(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one layer is counted."""
    return 2 * batch * n * num_kv_heads * d_k * bytes_per_value


@mistake("cache-bytes-of-one-sequence", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_one_sequence(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one sequence is counted."""
    return 2 * n * num_layers * num_kv_heads * d_k * bytes_per_value


@mistake("cache-bytes-of-one-head", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_one_head(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one head is counted."""
    return 2 * batch * n * num_layers * d_k * bytes_per_value


@mistake("cache-bytes-of-one-token", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_one_token(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: one token is counted."""
    return 2 * batch * num_layers * num_kv_heads * d_k * bytes_per_value


@mistake("cache-bytes-without-width", "efficient_heads.kv_cache_bytes")
def cache_bytes_without_width(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: a key is counted as one number."""
    return 2 * batch * n * num_layers * num_kv_heads * bytes_per_value


@mistake("cache-bytes-of-fixed-values", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_fixed_values(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: a value is always taken to have two bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k * 2


@mistake("cache-bytes-as-number-of-values", "efficient_heads.kv_cache_bytes")
def cache_bytes_as_number_of_values(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: values are counted, not their bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k


@mistake("cache-bytes-of-scores", "efficient_heads.kv_cache_bytes")
def cache_bytes_of_scores(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: the n × n weights are counted, which are made and thrown away."""
    return 2 * batch * n * n * num_layers * num_kv_heads * bytes_per_value


@mistake("cache-bytes-in-bits", "efficient_heads.kv_cache_bytes")
def cache_bytes_in_bits(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: bits, not bytes."""
    return 2 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value * 8


@mistake("cache-bytes-in-mebibytes", "efficient_heads.kv_cache_bytes")
def cache_bytes_in_mebibytes(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> float:
    """Wrong: mebibytes, not bytes."""
    values = 2 * batch * n * num_layers * num_kv_heads * d_k
    return values * bytes_per_value / 2**20


@mistake("count-not-whole", "efficient_heads.kv_cache_bytes")
def cache_bytes_not_whole(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> float:
    """Wrong: the right number as a float, which is exact up to 2⁵³ only."""
    return 2.0 * batch * n * num_layers * num_kv_heads * d_k * bytes_per_value


@mistake("count-overflows", "efficient_heads.kv_cache_bytes")
def cache_bytes_in_32_bits(
    batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
) -> int:
    """Wrong: the product is made in 32 bits."""
    sizes = [2, batch, n, num_layers, num_kv_heads, d_k, bytes_per_value]
    return int(np.prod(sizes, dtype=np.int32))


# --- forms -------------------------------------------------------------------------------------------------


def counted(count: Callable[..., Any]) -> Callable[..., Any]:
    """`kv_cache_bytes` with another count of batch, n, num_layers, num_kv_heads, d_k and bytes_per_value."""

    def kv_cache_bytes(
        batch: int, n: int, num_layers: int, num_kv_heads: int, d_k: int, bytes_per_value: int = 2
    ) -> Any:
        return count(batch, n, num_layers, num_kv_heads, d_k, bytes_per_value)

    return kv_cache_bytes


def divided_by(unit: float) -> Callable[..., float]:
    """The right count in a larger unit."""
    return lambda *sizes: 2 * math.prod(sizes) / unit


FORMS: dict[str, Callable[..., Any]] = {
    "cache-bytes-of-scores/one-matrix": lambda b, n, layers, heads, d_k, size: (
        b * layers * heads * n * n * size
    ),
    "cache-bytes-of-scores/tokens-squared": lambda b, n, *others: 2 * b * n * n * math.prod(others),
    "cache-bytes-of-scores/too": lambda b, n, layers, heads, d_k, size: (
        b * layers * heads * n * (2 * d_k + n) * size
    ),
    "cache-bytes-of-fixed-values/four": lambda *sizes: 2 * math.prod(sizes[:-1]) * 4,
    "cache-bytes-of-fixed-values/eight": lambda *sizes: 2 * math.prod(sizes[:-1]) * 8,
    "cache-bytes-in-bits/divided": lambda *sizes: 2 * math.prod(sizes) // 8,
    "cache-bytes-in-mebibytes/whole": lambda *sizes: 2 * math.prod(sizes) // 2**20,
    **{f"cache-bytes-in-mebibytes/{unit}": divided_by(unit) for unit in (1e3, 2**10, 1e6, 1e9, 2**30)},
    "cache-bytes-with-queries/outputs-too": lambda *sizes: 4 * math.prod(sizes),
    "cache-bytes-of-one-layer/one-sequence": lambda b, n, layers, heads, d_k, size: (
        2 * n * heads * d_k * size
    ),
    "count-not-whole/rounded-down": lambda *sizes: int(2.0 * math.prod(map(float, sizes))),
    "count-not-whole/numpy": lambda *sizes: np.float64(2 * math.prod(sizes)),
    "count-not-whole/float32": lambda *sizes: np.float32(2 * math.prod(sizes)),
    "count-overflows/numpy": lambda *sizes: np.prod([2, *sizes], dtype=np.int32),
    "count-overflows/unsigned": lambda *sizes: int(np.prod([2, *sizes], dtype=np.uint32)),
}
for name, count in FORMS.items():
    slug, _, form = name.partition("/")
    mistake(slug, "efficient_heads.kv_cache_bytes", form=form)(counted(count))
