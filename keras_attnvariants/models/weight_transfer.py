"""Projections of one attention layer for another."""

from typing import Any

import keras
from keras import ops

# What is taken over together: keys are made for their queries, outputs for their
# values.
PAIRS = (("query_dense", "key_dense"), ("value_dense", "output_dense"))


def head_widths(layer: keras.layers.Layer) -> dict[str, int]:
    """The widths of a head's keys and values, as far as a layer projects them."""
    found = {"key_dim": "key_dense", "value_dim": "value_dense"}
    return {
        name: matrix(layer, dense)[1] // layer.num_heads
        for name, dense in found.items()
        if hasattr(layer, dense)
    }


def take_projections(
    old: keras.layers.Layer, new: keras.layers.Layer
) -> list[tuple[Any, Any]]:
    """Copies the projections that mean the same in two layers.

    Args:
        old, new: built attention layers, of Keras or of this package.

    Returns:
        The weights that were copied: pairs of the old and the new one.

    Raises:
        ValueError: the old layer is quantized.
    """
    copied: list[tuple[Any, Any]] = []
    if getattr(old, "num_heads", None) != new.num_heads:
        return copied
    for names in PAIRS:
        if all(fits(old, new, name) for name in names):
            for name in names:
                copied += copy_dense(getattr(old, name), getattr(new, name))
    return copied


def fits(old: keras.layers.Layer, new: keras.layers.Layer, name: str) -> bool:
    """Whether both layers have a projection of this name with equal sizes."""
    if not (hasattr(old, name) and hasattr(new, name)):
        return False
    return matrix(old, name) == matrix(new, name)


def matrix(layer: keras.layers.Layer, name: str) -> tuple[int, int]:
    """The sizes of a projection as one matrix; Keras has an axis for the heads."""
    dense = getattr(layer, name)
    if getattr(dense, "quantization_mode", None) is not None:
        raise ValueError(
            "`model` must not be quantized; swap first, then quantize. "
            f"Received: {layer.name!r} in {dense.quantization_mode}"
        )
    first, *middle, last = (int(size) for size in dense.kernel.shape)
    for size in middle:
        first, last = (
            (first * size, last) if name == "output_dense" else (first, last * size)
        )
    return first, last


def copy_dense(old: keras.layers.Layer, new: keras.layers.Layer) -> list[Any]:
    """Copies the kernel and, if both have one, the bias; returns the pairs."""
    pairs = [(old.kernel, new.kernel)]
    if old.bias is not None and new.bias is not None:
        pairs.append((old.bias, new.bias))
    for one, other in pairs:
        other.assign(ops.reshape(one, other.shape))
    return pairs


def weight_name(weight: Any) -> str:
    """The last two parts of the path of a weight, such as `"query/kernel"`."""
    return "/".join(weight.path.split("/")[-2:])
