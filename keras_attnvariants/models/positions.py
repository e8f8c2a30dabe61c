"""Layers that add position information to embeddings."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.attention.registry import Saved
from keras_attnvariants.backend import Embedding
from keras_attnvariants.backend import constant
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package=PACKAGE)
class SinusoidalPositions(Saved, keras.layers.Layer):
    """Adds fixed sinusoids: all sines, then all cosines.

    `angle(p, m) = p / 10000^(2m / (d - 2))`, `m = 0 .. d/2 - 1`, as in tensor2tensor,
    Marian and the code of You et al. 2020.

    Args:
        max_length: number of positions in the table.
        endpoint: whether the last exponent is exactly 1, as above. If not, the exponent
            is `2m / d`, as in Vaswani et al. 2017, section 3.5, and in Hugging Face's
            MarianMT.

    Raises:
        ValueError: the width is odd or below 4, or, on a call with static
            shapes, a position lies beyond the table.
    """

    # The part of the model's width that positions take instead of embeddings.
    concatenated_dim = 0

    def __init__(
        self, max_length: int = 512, endpoint: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.max_length = check_integer("max_length", max_length)
        self.endpoint = endpoint

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        if width is None or width % 2 or width < 4:
            raise ValueError(
                "Sinusoidal positions need an even width of at least 4. "
                f"Received: width={width}"
            )
        exponent = 2 * np.arange(width // 2) / (width - 2 * self.endpoint)
        angle = np.arange(self.max_length)[:, None] / 10000**exponent
        table = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        self.table = constant(table.astype("float32"))

    def call(self, inputs: Tensor, start: Size = 0) -> Tensor:
        """`[B, T, width]` plus the positions `start .. start + T - 1`."""
        check_range(self.max_length, start, inputs.shape[1])
        size = (ops.shape(inputs)[1], self.table.shape[1])
        positions = ops.slice(self.table, (start, 0), size)
        return inputs + ops.cast(positions, inputs.dtype)


@keras.saving.register_keras_serializable(package=PACKAGE)
class ConcatenatedPositions(Saved, keras.layers.Layer):
    """Concatenates learned position embeddings to the word embeddings.

    Positions from `max_position` on share one embedding (CS287 2019).

    Args:
        position_dim: width of the position embeddings.
        max_position: position at which the table is clipped.
        max_length: longest sequence accepted.
    """

    def __init__(
        self,
        position_dim: int = 20,
        max_position: int = 20,
        max_length: int = 512,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.position_dim = check_integer("position_dim", position_dim)
        self.concatenated_dim = self.position_dim
        self.max_position = check_integer("max_position", max_position, minimum=0)
        self.max_length = check_integer("max_length", max_length)
        self.embedding = Embedding(
            max_position + 1, position_dim, dtype=self.dtype_policy, name="embedding"
        )

    def build(self, input_shape: Shape) -> None:
        self.embedding.build((None,))

    def call(self, inputs: Tensor, start: Size = 0) -> Tensor:
        """`[B, T, width]` to `[B, T, width + position_dim]`."""
        check_range(self.max_length, start, inputs.shape[1])
        batch, length = ops.shape(inputs)[:2]
        index = ops.minimum(ops.arange(length) + start, self.max_position)
        positions = ops.cast(self.embedding(index), inputs.dtype)[None]
        positions = ops.broadcast_to(positions, (batch, length, self.position_dim))
        return ops.concatenate([inputs, positions], axis=-1)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        *sizes, width = input_shape
        return (*sizes, None if width is None else width + self.position_dim)


def embedding_dim(hidden_dim: int, positions: keras.layers.Layer) -> int:
    """The width of the embeddings of a model with the given positions.

    Raises:
        ValueError: the positions leave no width for the embeddings.
    """
    width = hidden_dim - positions.concatenated_dim
    if width < 1:
        raise ValueError(
            "`hidden_dim` must be larger than the width of `positions`, "
            f"{positions.concatenated_dim}. Received: hidden_dim={hidden_dim}"
        )
    return width


def check_range(max_length: int, start: Size, length: Size) -> None:
    """Raises if a statically known range of positions exceeds `max_length`."""
    is_known = isinstance(start, int) and isinstance(length, int)
    if is_known and start + length > max_length:
        raise ValueError(
            f"The sequence must not exceed `max_length`={max_length} positions. "
            f"Received: length {start + length}"
        )
