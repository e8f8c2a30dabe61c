"""The parts of a block besides attention: residual, normalization, feed-forward."""

from typing import Any

import keras

from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import Dropout
from keras_attnvariants.backend import LayerNormalization
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor

PLACEMENTS = ("pre", "post")


class Residual(keras.layers.Layer):
    """The residual connection around one sub-layer `f`.

    `x + dropout(f(norm(x)))` with normalization `"pre"`, `norm(x + dropout(f(x)))`
    with `"post"`, `x + dropout(f(x))` with `None`. The block computes
    `y = f(sublayer_input(x))`, then `add(x, y)`.

    Args:
        normalization: `"pre"`, `"post"` or `None`.
        dropout: rate on the output of the sub-layer.
        **kwargs: those of `keras.layers.Layer`.
    """

    def __init__(
        self, normalization: str | None, dropout: float, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.normalization = normalization
        self.norm = None if normalization is None else layer_norm(self.dtype_policy)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: Shape) -> None:
        if self.norm is not None:
            self.norm.build(input_shape)

    def sublayer_input(self, x: Tensor) -> Tensor:
        """The input of the sub-layer: `x`, `[..., width]`, normalized if `"pre"`."""
        if self.norm is not None and self.normalization == "pre":
            return self.norm(x)
        return x

    def add(self, x: Tensor, y: Tensor, training: bool | None = None) -> Tensor:
        """The sum of the input `x` and the sub-layer's output `y`, `[..., width]`."""
        x = x + self.dropout(y, training=training)
        if self.norm is not None and self.normalization == "post":
            return self.norm(x)
        return x


class FeedForward(keras.layers.Layer):
    """`activation(x W_1 + b_1) W_2 + b_2`, with dropout on the hidden layer.

    Args:
        intermediate_dim: width of the hidden layer.
        activation: name of a Keras activation.
        dropout: rate on the hidden layer.
        **kwargs: those of `keras.layers.Layer`.
    """

    def __init__(
        self, intermediate_dim: int, activation: str, dropout: float, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        # Glorot with the gain sqrt(2) of a rectifier.
        self.intermediate_dense = Dense(
            intermediate_dim,
            activation=activation,
            kernel_initializer=keras.initializers.VarianceScaling(
                2.0, mode="fan_avg", distribution="uniform"
            ),
            dtype=self.dtype_policy,
            name="intermediate",
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: Shape) -> None:
        self.intermediate_dense.build(input_shape)
        self.output_dense = Dense(
            input_shape[-1], dtype=self.dtype_policy, name="output"
        )
        self.output_dense.build((*input_shape[:-1], self.intermediate_dense.units))

    def call(self, x: Tensor, training: bool | None = None) -> Tensor:
        """`[..., width]` to `[..., width]`."""
        hidden = self.dropout(self.intermediate_dense(x), training=training)
        return self.output_dense(hidden)


def layer_norm(dtype: DType, name: str = "norm") -> LayerNormalization:
    """Layer normalization as every model here uses it."""
    return LayerNormalization(epsilon=1e-5, dtype=dtype, name=name)
