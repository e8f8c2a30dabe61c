"""Naive attention with biases by distance: ALiBi and relative biases, as in T5."""

import math

import numpy as np

from tests.reference.dot_product import dot_product_attention


def alibi_attention(config, weights, query, value, key=None, **masks):
    """Output `[B, T, dim]` and weights `[B, H, T, T]`."""
    heads, length = config["num_heads"], query.shape[1]
    bias = np.zeros((heads, length, length))
    for h, i, j in np.ndindex(bias.shape):
        # For a power of two, as here: a geometric sequence that ends with 2^-8.
        bias[h, i, j] = -(2.0 ** (-8 * (h + 1) / heads)) * abs(i - j)
    return dot_product_attention(config, weights, query, value, key, bias=bias, **masks)


def relative_bias_attention(config, weights, query, value, key=None, **masks):
    """Output `[B, T, dim]` and weights `[B, H, T, T]`."""
    heads, length = config["num_heads"], query.shape[1]
    table = weights["relative_bias/embeddings"]  # [buckets, H]
    bias = np.zeros((heads, length, length))
    for h, i, j in np.ndindex(bias.shape):
        bias[h, i, j] = table[bucket(config, j - i), h]
    return dot_product_attention(config, weights, query, value, key, bias=bias, **masks)


def bucket(config, distance):
    """The bucket of one relative position."""
    buckets, limit = config["num_buckets"], config["max_distance"]
    first = 0
    if config["bidirectional"]:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(limit / exact)
    return first + min(exact + int(share * (buckets - exact)), buckets - 1)
