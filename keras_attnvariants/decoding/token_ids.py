"""Token ids that are padded on the right."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.utils.typing import Tensor


def to_token_ids(name: str, ids: Any) -> Tensor:
    """`ids` as an int32 tensor `[B, length]`.

    Raises:
        ValueError: they are not integers of two axes.
    """
    ids = ops.convert_to_tensor(ids)
    is_integer = "int" in keras.backend.standardize_dtype(ids.dtype)
    if len(ids.shape) != 2 or not is_integer:
        raise ValueError(
            f"`{name}` must be a tensor of integers [batch, length]. Received: "
            f"shape {tuple(ids.shape)}, dtype {ids.dtype}"
        )
    return ops.cast(ids, "int32")


def count_tokens(ids: Tensor, pad_id: int) -> Tensor:
    """The number of ids along the last axis that are not padding, int32."""
    return ops.sum(ops.cast(ops.not_equal(ids, pad_id), "int32"), axis=-1)
