"""Functions that all naive references share: projections, heads and the 0/1 mask."""

import numpy as np


def split_heads(weights, name, heads, inputs):
    """Projects `[B, L, d]` with the named kernel into `[B, L, H, D]`.

    Head `n` owns the `n`-th block of consecutive kernel columns.
    """
    kernel = weights[f"{name}/kernel"]
    columns = kernel.reshape(kernel.shape[0], heads, -1)  # [d, H, D]
    projected = np.einsum("bld,dhe->blhe", inputs, columns)
    if f"{name}/bias" in weights:
        projected = projected + weights[f"{name}/bias"].reshape(heads, -1)
    return projected


def merge_heads(weights, context):
    """`concat_h(context) W_o`: `[B, T, H, D]` to `[B, T, dim]`."""
    kernel = weights["output/kernel"]
    rows = kernel.reshape(-1, kernel.shape[-1])  # [H * D, dim]
    output = context.reshape(*context.shape[:2], -1) @ rows
    return output + weights.get("output/bias", 0.0)


def allowed(shape, query_mask=None, value_mask=None, attention_mask=None, causal=False):
    """Boolean `[B, T, S]`: whether query `i` of sentence `b` may use position `j`."""
    result = np.ones(shape, bool)
    if causal:
        for i in range(shape[1]):
            result[:, i, i + 1 :] = False
    if query_mask is not None:
        result &= query_mask[:, :, None]
    if value_mask is not None:
        result &= value_mask[:, None, :]
    if attention_mask is not None:
        result &= attention_mask
    return result
