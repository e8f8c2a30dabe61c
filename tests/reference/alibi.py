"""Naive attention with linear biases (Press, Smith and Lewis 2022, section 3)."""

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
