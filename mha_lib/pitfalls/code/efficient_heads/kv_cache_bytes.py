"""Mistakes in `kv_cache_bytes`."""

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
