"""Drop-ins for Keras layers that are faster, or need less memory for gradients.

* `Dense`, `ReversibleEmbedding`: products of matrices, and fast quantization;
* `Embedding`: sums of gradients in float32;
* `Dropout`: drawing a random float per element takes longer than dropping the element.
  On a CPU, Keras' own layer takes about a fifth of a training step of a small
  Transformer;
* `LayerNormalization`: fewer operators, which decoding repeats at each position, and
  fewer passes over its inputs for their gradient.
"""

import gc
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name as backend_name
from keras_attnvariants.backend.compilation import on_cpu
from keras_attnvariants.backend.shapes import as_matrix
from keras_attnvariants.backend.shapes import with_lead_of
from keras_attnvariants.utils.typing import Tensor

# Sizes of kernels whose gradient takes twice as long as it should on a CPU: one side is
# a multiple of `CONFLICTING`, so that rows lie in the same sets of the processor's
# cache, and the other side is at most `NARROW`.
CONFLICTING, NARROW = 512, 320
# Distance of a part from such a multiple: one line of the cache, in float32.
LINE = 16

# An element is dropped if its random 16-bit integer is below `rate` times this number.
LEVELS = 2**16


class Quantized(keras.layers.Layer):
    """Mixin of layers whose quantization takes a fraction of Keras' time."""

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """As in Keras, without its type check, which would refuse a subclass."""
        # Keras collects garbage after each kernel: let it examine new objects only.
        gc.freeze()
        try:
            super().quantize(mode, type_check=False, config=config)
        finally:
            gc.unfreeze()


class Dense(Quantized, keras.layers.Dense):
    """`keras.layers.Dense` that first reshapes inputs `[..., I]` to a matrix `[N, I]`.

    TensorFlow can then add biases and apply activations within the product. The
    gradient of a kernel such as 256 x 1024 is computed in two parts, where that is
    faster.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        rows = as_matrix(inputs)
        if training and self._has_slow_gradient():
            kernel = ops.cast(self.kernel, self.compute_dtype)  # not the variable
            outputs = divided_gradient_product(rows, kernel)
            if self.bias is not None:
                outputs = ops.add(outputs, self.bias)
            if self.activation is not None:
                outputs = self.activation(outputs)
        else:
            outputs = super().call(rows, training)
        return with_lead_of(inputs, outputs)

    def _has_slow_gradient(self) -> bool:
        """Whether the kernel's gradient is faster in parts; measured in float32."""
        narrow, wide = sorted(self.kernel.shape)
        is_float32 = self.compute_dtype == "float32" and on_cpu() and not in_xla()
        return is_float32 and narrow <= NARROW and wide % CONFLICTING == 0


def divided_gradient_product(inputs: Tensor, kernel: Tensor) -> Tensor:
    """A product of matrices that computes the gradient of the kernel in two parts.

    Values and gradients are those of the plain product.

    Args:
        inputs: `[N, I]`.
        kernel: `[I, O]`; its longer side is divided.
    """
    is_tall = kernel.shape[0] > kernel.shape[1]
    border = [max(kernel.shape) // 2 + LINE]

    @ops.custom_gradient
    def product(x: Tensor, matrix: Tensor) -> tuple[Tensor, Any]:
        def gradients(upstream: Tensor) -> tuple[Tensor, Tensor]:
            if is_tall:
                pairs = [(part, upstream) for part in ops.split(x, border, axis=1)]
            else:
                pairs = [(x, part) for part in ops.split(upstream, border, axis=1)]
            parts = [ops.matmul(ops.transpose(a), b) for a, b in pairs]
            of_matrix = ops.concatenate(parts, axis=0 if is_tall else 1)
            return ops.matmul(upstream, ops.transpose(matrix)), of_matrix

        return ops.matmul(x, matrix), gradients

    return product(inputs, kernel)


class Embedding(Quantized, keras.layers.Embedding):
    """`keras.layers.Embedding` that never casts its whole table.

    Keras does so in mixed-precision training on JAX. The many gradients of a frequent
    token would then be summed in half precision.
    """

    def add_weight(self, *args: Any, **options: Any) -> keras.Variable:
        if options.get("name") == "embeddings":
            options["autocast"] = False
        return super().add_weight(*args, **options)


class ReversibleEmbedding(Embedding, keras.layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding` that projects back with a matrix product."""

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            return super().call(inputs)
        logits = super().call(as_matrix(inputs), reverse=True)
        return with_lead_of(inputs, logits)


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Dropout(keras.layers.Dropout):
    """Drop-in for `keras.layers.Dropout` that is several times as fast on a CPU.

    In training, elements become 0 with probability `rate`, rounded to a multiple of
    2^-16; the others are divided by the probability of being kept. In inference, the
    inputs are returned.

    Args:
        rate: probability of dropping an element, from 0 to 1.
        noise_shape: as in Keras, whose implementation then draws the elements.
        seed: seed of the random elements; `None` for a random seed.
        **kwargs: as in `keras.layers.Layer`.

    Raises:
        ValueError: `rate` is out of its range.

    Example:

    >>> layer = Dropout(0.5, seed=1)
    >>> sorted({float(x) for x in layer(ops.ones(100), training=True)})
    [0.0, 2.0]
    """

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        """Inputs of any shape to outputs of the same shape and dtype."""
        if self.noise_shape is not None:
            return super().call(inputs, training)
        dropped = round(self.rate * LEVELS)
        if not training or dropped == 0:
            return inputs
        if dropped == LEVELS:
            return ops.zeros_like(inputs)
        bits = random_bits(inputs, self.seed_generator.next())
        # The gradient needs only `bits >= dropped`, one byte per element.
        kept = inputs * (LEVELS / (LEVELS - dropped))
        return ops.where(bits >= dropped, kept, ops.zeros((), inputs.dtype))


def random_bits(x: Tensor, seed: Tensor) -> Tensor:
    """Uniform random unsigned 16-bit integers.

    Args:
        x: a tensor of the shape of the result.
        seed: `[2]`, two integers, as from `keras.random.SeedGenerator`.
    """
    if backend_name() == "jax":
        import jax

        return jax.random.bits(seed, x.shape, "uint16")
    import tensorflow as tf

    # One 32-bit word provides two elements.
    size = tf.size(x)
    words = tf.random.stateless_uniform([(size + 1) // 2], seed, None, None, "int32")
    halves = tf.reshape(tf.bitcast(words, "uint16"), [-1])
    return tf.reshape(tf.slice(halves, [0], [size]), tf.shape(x))


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class LayerNormalization(keras.layers.LayerNormalization):
    """Drop-in for `keras.layers.LayerNormalization` over the last axis.

    Scale and offset keep their dtype under a mixed policy.

    Args:
        epsilon: added to the variance.
        **kwargs: as in `keras.layers.Layer`.

    Example:

    >>> layer = LayerNormalization(epsilon=0.0)
    >>> layer(ops.array([[1.0, 3.0]])).numpy().tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, epsilon: float = 1e-3, **kwargs: Any) -> None:
        super().__init__(epsilon=epsilon, **{"autocast": False, **kwargs})

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """`[..., D]` to `[..., D]`."""
        dtype = keras.backend.result_type(inputs.dtype, "float32")
        arguments = [ops.cast(x, dtype) for x in (inputs, self.gamma, self.beta)]
        if training:
            outputs = ops.custom_gradient(self._with_gradients)(*arguments)
        else:
            outputs, _ = self._with_gradients(*arguments)
        return ops.cast(outputs, inputs.dtype)

    def _with_gradients(
        self, x: Tensor, gamma: Tensor, beta: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
        """The outputs, and a function from their gradient to those of the arguments."""

        def mean(x: Tensor) -> Tensor:
            return ops.mean(x, axis=-1, keepdims=True)

        centred = x - mean(x)
        scale = ops.rsqrt(mean(ops.square(centred)) + self.epsilon)
        normalized = centred * scale

        def gradients(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            of_normalized = upstream * gamma
            shared = mean(of_normalized) + normalized * mean(of_normalized * normalized)
            rows = tuple(range(len(x.shape) - 1))
            of_gamma = ops.sum(upstream * normalized, axis=rows)
            return scale * (of_normalized - shared), of_gamma, ops.sum(upstream, rows)

        return normalized * gamma + beta, gradients

    def get_config(self) -> dict[str, Any]:
        return {**keras.layers.Layer.get_config(self), "epsilon": self.epsilon}
