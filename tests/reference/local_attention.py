"""Naive local attention (Loem et al. 2022): learned attention to near positions.

The full matrix of learned attention, masked beyond the distance `n - 1`.
"""

import numpy as np

from tests.reference.dot_product import dot_product_attention


def local_attention(
    config,
    weights,
    query,
    value,
    key=None,
    query_mask=None,
    value_mask=None,
    attention_mask=None,
    causal=False,
):
    """Output `[B, T, dim]` and weights `[B, H, T, T]`."""
    batch, length = query.shape[:2]
    near = np.zeros((batch, length, length), bool)
    for i in range(length):
        for j in range(length):
            near[:, i, j] = abs(i - j) < config["n"]
    if attention_mask is not None:
        near &= attention_mask
    return dot_product_attention(
        config, weights, query, value, key, query_mask, value_mask, near, causal
    )
