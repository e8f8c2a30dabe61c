"""Between one wide axis and one axis per head."""

from keras import ops


def split_heads(x, num_heads: int):
    """`[..., H * D]` to `[..., H, D]`."""
    shape = ops.shape(x)
    return ops.reshape(x, (*shape[:-1], num_heads, shape[-1] // num_heads))


def merge_heads(x):
    """`[..., H, D]` to `[..., H * D]`."""
    shape = ops.shape(x)
    return ops.reshape(x, (*shape[:-2], shape[-2] * shape[-1]))


def heads_first(x, num_heads: int):
    """`[B, L, H * D]` to `[B, H, L, D]`, as products of matrices want it."""
    return ops.transpose(split_heads(x, num_heads), (0, 2, 1, 3))
