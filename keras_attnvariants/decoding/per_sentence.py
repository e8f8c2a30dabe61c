"""Options of a search that hold for all sentences, or for each its own."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.utils.typing import Tensor

# How dtypes are called in messages.
KINDS = {"int32": "integer", "float32": "number", "bool": "bool"}


def is_per_sentence(value: Any) -> bool:
    """Whether a value has an axis of sentences, or is meant to have one."""
    return bool(ops.is_tensor(value)) or np.ndim(value) > 0


def known_values(*options: Any) -> Iterator[tuple[Any, ...]]:
    """The values of options for each sentence, `None` for those of tensors.

    In a graph, the values of tensors are not known, and they are not checked.
    """
    arrays = (None if ops.is_tensor(option) else option for option in options)
    yield from np.broadcast(*(np.asarray(array, dtype=object) for array in arrays))


def largest(option: Any, unknown: int) -> int:
    """The largest value of an option, or `unknown` if it is a tensor."""
    return unknown if ops.is_tensor(option) else max(np.ravel(option).tolist() or [0])


def per_sentence(name: str, value: Any, dtype: str, source_ids: Tensor) -> Any:
    """A single value as it is, or the values of the sentences as a tensor `[B]`.

    Args:
        name: of the option, for messages.
        value: of the option.
        dtype: one of `KINDS`.
        source_ids: int `[B, S]`.

    Raises:
        ValueError: there is not one per sentence, or they are not of that kind.
    """
    if not is_per_sentence(value):
        return value
    values = ops.convert_to_tensor(value)
    found = keras.backend.standardize_dtype(values.dtype)
    kinds = {"int32": ("int",), "float32": ("int", "float"), "bool": ("bool",)}[dtype]
    sizes = {source_ids.shape[0], *values.shape} - {None}
    fits = len(values.shape) == 1 and len(sizes) < 2
    if not fits or not any(kind in found for kind in kinds):
        raise ValueError(
            f"`{name}` must be one {KINDS[dtype]}, or a tensor with one per sentence. "
            f"Received: shape {tuple(values.shape)}, dtype {found}, with source_ids of "
            f"shape {tuple(source_ids.shape)}"
        )
    return ops.cast(values, dtype)


def with_rank(value: Any, rank: int) -> Any:
    """Values `[B]` with axes of size 1 behind them, or a single value as it is."""
    if not is_per_sentence(value):
        return value
    return ops.reshape(value, (-1, *[1] * (rank - 1)))


def is_used(value: Any) -> bool:
    """Whether an option may have an effect: not if it is 0 or False for all."""
    return is_per_sentence(value) or bool(value)
