"""Dropout that draws few random bits.

Drawing a random float per element takes longer than dropping the element. On a CPU,
Keras' own layer takes about a fifth of a training step of a small Transformer.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import name as backend_name
from keras_attnvariants.utils.typing import Tensor

# An element is dropped if its random 16-bit integer is below `rate` times this.
LEVELS = 2**16


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Dropout(keras.layers.Dropout):
    """Drop-in for `keras.layers.Dropout` that is several times as fast on a CPU.

    In training, elements become 0 with probability `rate`, rounded to a multiple of
    2^-16; the others are divided by the probability of being kept. In inference, the
    inputs are returned.

    Args:
        rate: probability of dropping an element, from 0 to 1.
        seed: of the random elements; `None` for a random one.
        **kwargs: those of `keras.layers.Layer`.

    Raises:
        ValueError: `rate` is out of its range.

    Example:

    >>> layer = Dropout(0.5, seed=1)
    >>> sorted({float(x) for x in layer(ops.ones(100), training=True)})
    [0.0, 2.0]
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(rate, seed=seed, **kwargs)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        """Inputs of any shape to outputs of the same shape and dtype."""
        dropped = round(self.rate * LEVELS)
        if not training or dropped == 0:
            return inputs
        if dropped == LEVELS:
            return ops.zeros_like(inputs)
        bits = random_bits(inputs, self.seed_generator.next())
        return scale_where(bits >= dropped, inputs, LEVELS / (LEVELS - dropped))

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().get_config()
        del config["noise_shape"]
        return config


def scale_where(kept: Tensor, inputs: Tensor, scale: float) -> Tensor:
    """`inputs * scale` where the bools `kept` are true, 0 elsewhere.

    The gradient needs nothing but the bools: a byte per element.
    """

    @ops.custom_gradient
    def apply(x: Tensor) -> tuple[Tensor, Any]:
        # The gradient is written differently on purpose: of two equal expressions,
        # TensorFlow computes one and keeps its floats for the backward pass.
        def gradient(upstream: Tensor) -> Tensor:
            return ops.where(kept, upstream * scale, ops.zeros((), upstream.dtype))

        return x * (ops.cast(kept, x.dtype) * scale), gradient

    return apply(inputs)


def random_bits(x: Tensor, seed: Tensor) -> Tensor:
    """Uniform random unsigned 16-bit integers.

    Args:
        x: tensor whose shape they have.
        seed: `[2]`, two integers, as of `keras.random.SeedGenerator`.
    """
    if backend_name() == "jax":
        import jax

        return jax.random.bits(seed, x.shape, "uint16")
    import tensorflow as tf

    # One 32-bit word serves two elements.
    size = tf.size(x)
    words = tf.random.stateless_uniform([(size + 1) // 2], seed, None, None, "int32")
    halves = tf.reshape(tf.bitcast(words, "uint16"), [-1])
    return tf.reshape(tf.slice(halves, [0], [size]), tf.shape(x))
