"""Naive linear attention (Katharopoulos et al. 2020, sections 3.2 and 3.3)."""

import numpy as np

from tests.reference.projections import allowed
from tests.reference.projections import merge_heads
from tests.reference.projections import split_heads


def linear_attention(config, weights, query, value, key=None, **masks):
    """Output `[B, T, dim]` and weights `[B, H, T, S]`.

    `A_ij = phi(q_i) . phi(k_j) / sum_m phi(q_i) . phi(k_m)`, `phi(x) = elu(x) + 1`.
    """
    heads = config["num_heads"]
    q = split_heads(weights, "query", heads, query)  # [B, T, H, D]
    k = split_heads(weights, "key", heads, value if key is None else key)
    v = split_heads(weights, "value", heads, value)  # [B, S, H, D]
    batch, length, source_length = q.shape[0], q.shape[1], v.shape[1]
    mask = allowed((batch, length, source_length), **masks)
    scores = np.zeros((batch, heads, length, source_length))
    for b, h, i in np.ndindex(batch, heads, length):
        similarity = [phi(q[b, i, h]) @ phi(key) for key in k[b, :, h]]
        row = np.where(mask[b, i], similarity, 0.0)
        scores[b, h, i] = row / (row.sum() or 1.0)
    context = np.einsum("bhts,bshd->bthd", scores, v)
    return merge_heads(weights, context), scores


def phi(x):
    """`elu(x) + 1`."""
    return np.where(x > 0, x + 1.0, np.exp(np.minimum(x, 0.0)))
