"""Naive multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).

`alpha = softmax(q k^T / sqrt(d_k) + mask)`, `output = concat_h(alpha v) W_o`, one
sentence, one head and one query position at a time, in float64.
"""

import numpy as np

from tests.reference.projections import allowed
from tests.reference.projections import merge_heads
from tests.reference.projections import split_heads


def dot_product_attention(
    config,
    weights,
    query,
    value,
    key=None,
    query_mask=None,
    value_mask=None,
    attention_mask=None,
    causal=False,
    bias=0.0,
):
    """Output `[B, T, dim]` and weights `[B, H, T, S]` of learned attention.

    `bias` `[H, T, S]` is added to the energies.
    """
    heads = config["num_heads"]
    q = split_heads(weights, "query", heads, query)  # [B, T, H, D]
    k = split_heads(weights, "key", heads, value if key is None else key)
    v = split_heads(weights, "value", heads, value)  # [B, S, H, D]
    batch, length, _, width = q.shape
    shape = (batch, length, v.shape[1])
    bias = np.broadcast_to(bias, (heads, *shape[1:]))
    mask = allowed(shape, query_mask, value_mask, attention_mask, causal)
    scores = np.zeros((batch, heads, length, v.shape[1]))
    for b, h, i in np.ndindex(batch, heads, length):
        energies = k[b, :, h] @ q[b, i, h] / np.sqrt(width)  # [S]
        scores[b, h, i] = softmax_over(energies + bias[h, i], mask[b, i])
    context = np.einsum("bhts,bshd->bthd", scores, v)
    return merge_heads(weights, context), scores


def softmax_over(energies, mask):
    """Softmax of the allowed entries; all zeros where nothing is allowed."""
    result = np.zeros(len(energies))
    if mask.any():
        chosen = energies[mask]
        exponentials = np.exp(chosen - chosen.max())
        result[mask] = exponentials / exponentials.sum()
    return result
