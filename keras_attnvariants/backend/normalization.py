"""Layer normalization that keeps little in memory for its gradient."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.blocks import filled
from keras_attnvariants.backend.blocks import unfilled
from keras_attnvariants.backend.compilation import jit
from keras_attnvariants.utils.typing import Tensor

# Gradients are compiled for multiples of it, not for every size of a batch.
FILLED_ROWS = 256


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class LayerNormalization(keras.layers.LayerNormalization):
    """Drop-in for `keras.layers.LayerNormalization` over the last axis.

    In training, only the input is kept for the backward pass. The gradient, in closed
    form, computes the statistics again, in one compiled pass over the input.
    Scale and offset keep their dtype under a mixed policy.

    Args:
        epsilon: added to the variance.
        **kwargs: those of `keras.layers.Layer`.

    Example:

    >>> layer = LayerNormalization(epsilon=0.0)
    >>> layer(ops.array([[1.0, 3.0]]), training=True).numpy().tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, epsilon: float = 1e-3, **kwargs: Any) -> None:
        super().__init__(epsilon=epsilon, **{"autocast": False, **kwargs})

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """`[..., D]` to `[..., D]`."""
        if not training:
            return standardize(inputs, self.gamma, self.beta, self.epsilon)
        # TensorFlow differentiates a custom gradient for tensors, not for variables.
        gamma, beta = (ops.copy(weight) for weight in (self.gamma, self.beta))
        return normalize(inputs, gamma, beta, self.epsilon)

    def get_config(self) -> dict[str, Any]:
        return {**keras.layers.Layer.get_config(self), "epsilon": self.epsilon}


def standardize(inputs: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """`gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with few operators.

    Args:
        inputs: `[..., D]`.
        gamma, beta: `[D]`.
        epsilon: added to the variance.

    Returns:
        `[..., D]` in the dtype of the inputs.
    """
    dtype = keras.backend.result_type(inputs.dtype, "float32")
    x = ops.cast(inputs, dtype)
    centred = x - mean(x)
    scale = ops.rsqrt(mean(ops.square(centred)) + epsilon)
    outputs = centred * scale * ops.cast(gamma, dtype) + ops.cast(beta, dtype)
    return ops.cast(outputs, inputs.dtype)


def normalize(inputs: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """`standardize` with its gradient.

    Args:
        inputs: `[..., D]`.
        gamma, beta: `[D]`.
        epsilon: added to the variance.

    Returns:
        `[..., D]` in the dtype of the inputs.
    """

    @ops.custom_gradient
    def apply(x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Any]:
        def gradient(upstream: Tensor) -> tuple[Tensor, ...]:
            rows = [ops.reshape(part, (-1, x.shape[-1])) for part in (x, upstream)]
            rows = filled(rows, FILLED_ROWS)
            by_x, *others = compiled_gradients(epsilon)(*rows, gamma)
            return unfilled(by_x, x), *others

        y = ops.layer_normalization(x, gamma, beta, epsilon=epsilon)
        return ops.cast(y, x.dtype), gradient

    return apply(inputs, gamma, beta)


@functools.cache
def compiled_gradients(epsilon: float) -> Callable[..., tuple[Tensor, ...]]:
    """A compiled function of the gradients with respect to `x`, `gamma` and `beta`.

    It takes `x` and the gradient of the output, both `[N, D]`, and `gamma`, `[D]`.
    """

    def gradients(x: Tensor, upstream: Tensor, gamma: Tensor) -> tuple[Tensor, ...]:
        dtypes = x.dtype, gamma.dtype
        dtype = keras.backend.result_type(x.dtype, "float32")
        x, upstream, gamma = (ops.cast(part, dtype) for part in (x, upstream, gamma))
        centred = x - mean(x)
        scale = ops.rsqrt(mean(ops.square(centred)) + epsilon)
        x = centred * scale
        slope = upstream * gamma
        by_x = scale * (slope - mean(slope) - x * mean(slope * x))
        by_gamma, by_beta = ops.sum(upstream * x, axis=0), ops.sum(upstream, axis=0)
        return (
            ops.cast(by_x, dtypes[0]),
            ops.cast(by_gamma, dtypes[1]),
            ops.cast(by_beta, dtypes[1]),
        )

    return jit(gradients)


def mean(x: Tensor) -> Tensor:
    """The mean over the last axis: `[..., D]` to `[..., 1]`."""
    return ops.mean(x, axis=-1, keepdims=True)
