"""Naive hard-coded Gaussian attention (You, Sun and Iyyer 2020).

Head `n` of offset `a_n` puts the weight `phi_s(j - (c_i + a_n))` on position `j`,
where `c_i = i` for self-attention and `c_i = floor(gamma i)` for cross-attention
and `phi_s` is the density of a normal distribution of standard deviation `s`.
The whole matrix is written out; masked entries are zeroed, nothing is renormalised.
"""

import math

import numpy as np

from tests.reference.projections import allowed
from tests.reference.projections import merge_heads
from tests.reference.projections import split_heads


def density(x, deviation):
    """`exp(-x^2 / (2 s^2)) / (s sqrt(2 pi))`."""
    scaled = x / deviation
    return math.exp(-0.5 * scaled * scaled) / (deviation * math.sqrt(2 * math.pi))


def weight(config, deviation, distance):
    """Weight of a position at `distance` from a head's centre."""
    implementation = config.get("implementation", "gaussian")
    if implementation == "index":
        return 1.0 if distance == 0 else 0.0
    if implementation == "conv" and abs(distance) > config["window"] // 2:
        return 0.0
    result = density(distance, deviation)
    return result if result >= config["threshold"] else 0.0


def matrix(config, offset, deviation, centres, source_length):
    """Dense `G [T, S]` of one head from the equation, without masks."""
    rows = [
        [weight(config, deviation, j - (centre + offset)) for j in range(source_length)]
        for centre in centres
    ]
    return np.array(rows).reshape(len(centres), source_length)


def tiled(values, heads):
    """One value per head: `(-1, 1)` over four heads is `(-1, 1, -1, 1)`."""
    values = np.atleast_1d(values)
    return [values[n % len(values)] for n in range(heads)]


def mix(config, weights, value, centres, mask):
    """Output and scores of hard-coded heads centred at `centres` (one per query)."""
    heads = config["num_heads"]
    v = split_heads(weights, "value", heads, value)  # [B, S, H, D]
    offsets = tiled(config["offsets"], heads)
    deviations = tiled(config["standard_deviation"], heads)
    dense = np.stack(
        [
            matrix(config, offset, deviation, centres, v.shape[1])
            for offset, deviation in zip(offsets, deviations, strict=True)
        ]
    )  # [H, T, S]
    scores = dense[None] * mask[:, None]
    context = np.einsum("bhts,bshd->bthd", scores, v)
    return merge_heads(weights, context), scores


def hard_coded_attention(
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
    """Self-attention: output `[B, T, dim]` and weights `[B, H, T, T]`."""
    del key  # no head looks at keys
    batch, length = query.shape[:2]
    shape = (batch, length, length)
    mask = allowed(shape, query_mask, value_mask, attention_mask, causal)
    return mix(config, weights, value, list(range(length)), mask)


def hard_coded_cross_attention(
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
    """Cross-attention: output `[B, T, dim]` and weights `[B, H, T, S]`."""
    del key
    batch, length = query.shape[:2]
    centres = [centre(config, i) for i in range(length)]
    shape = (batch, length, value.shape[1])
    mask = allowed(shape, query_mask, value_mask, attention_mask, causal)
    return mix(config, weights, value, centres, mask)


def centre(config, i):
    """Source position that target position `i` (0-based) looks at."""
    position = config["length_ratio"] * i
    # A rational ratio may fall a rounding error below the integer it means.
    return math.floor(position + 1e-9) if config["floor"] else position
