"""Layers whose products of 8-bit integers are as fast as the processor allows.

TensorFlow's own product of such matrices on a CPU takes several times as long as that
of floats; the kernel that oneDNN brings takes a fraction of it. Keras quantizes the
layers and knows what to do everywhere else.
"""

import contextlib
import contextvars
import functools
from collections.abc import Iterator

import keras
from keras import ops

from keras_attnvariants.backend.compilation import in_xla
from keras_attnvariants.backend.compilation import name

LARGEST = 127.0
KERNEL = "_QuantizedMatMul"

_portable = contextvars.ContextVar("portable", default=False)


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """What is traced in this context runs wherever TensorFlow does, fast or not."""
    token = _portable.set(True)
    try:
        yield
    finally:
        _portable.reset(token)


class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, fast on a CPU once it is quantized to int8.

    Inputs are made a matrix first, so that TensorFlow can add biases and apply
    activations within the product.
    """

    def call(self, inputs, training=None):
        shape = ops.shape(inputs)
        rows = ops.reshape(inputs, (-1, shape[-1]))
        outputs = super().call(rows, training)
        return ops.reshape(outputs, (*shape[:-1], self.units))

    def quantize(self, mode=None, type_check=True, config=None):
        """As in Keras, which would refuse a subclass."""
        super().quantize(mode, type_check=False, config=config)

    def _int8_call(self, inputs, training=None):
        if not is_fast_here() or self.inputs_quantizer is None or self.lora_enabled:
            return super()._int8_call(inputs, training)
        outputs = multiply(inputs, self._kernel, self.kernel_scale)
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


class ReversibleEmbedding(keras.layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding`, fast once it is quantized to int8."""

    def quantize(self, mode=None, type_check=True, config=None):
        """As in Keras, which would refuse a subclass."""
        super().quantize(mode, type_check=False, config=config)

    def _int8_call(self, inputs, reverse=False):
        if not reverse or not self.tie_weights or not is_fast_here():
            return super()._int8_call(inputs, reverse)
        return multiply(inputs, self._embeddings, self.embeddings_scale, True)


def is_fast_here() -> bool:
    """Whether `multiply` works where this is computed: in a graph, on a CPU."""
    if name() != "tensorflow" or _portable.get():
        return False
    return in_graph() and not in_xla() and has_kernel()


def in_graph() -> bool:
    """Whether TensorFlow is tracing a function; the kernel cannot be called else."""
    import tensorflow as tf

    return not tf.executing_eagerly()


@functools.cache
def has_kernel() -> bool:
    """Whether this TensorFlow brings the kernel, and computes on a CPU."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    found = kernels.get_registered_kernels_for_op(KERNEL).kernel
    return bool(found) and not tf.config.list_physical_devices("GPU")


def multiply(inputs, kernel, kernel_scale, transposed: bool = False):
    """Product of floats with a matrix of 8-bit integers, which has a gradient.

    Each row of the inputs is rounded to 8-bit integers of its own scale.

    Args:
        inputs: `[..., I]`, in float32 or bfloat16, the dtype of the result.
        kernel: int8 `[I, O]`, or `[O, I]` if `transposed`.
        kernel_scale: `[O]`, integers per unit of what they stand for.
        transposed: how the kernel lies.

    Returns:
        `[..., O]`.
    """
    import tensorflow as tf

    dtype = inputs.dtype
    kernel = tf.convert_to_tensor(kernel)
    kernel_scale = tf.cast(tf.convert_to_tensor(kernel_scale), "float32")

    @tf.custom_gradient
    def product(inputs):
        def gradient(upstream):
            matrix = tf.cast(kernel, "float32")
            matrix /= kernel_scale[:, None] if transposed else kernel_scale
            matrix = matrix if transposed else tf.transpose(matrix)
            return tf.matmul(upstream, tf.cast(matrix, dtype))

        rows = tf.cast(inputs, "float32")
        peak = tf.reduce_max(tf.abs(rows), axis=-1, keepdims=True)
        peak = tf.maximum(peak, keras.config.epsilon())
        integers = tf.cast(tf.round(rows * (LARGEST / peak)), "int8")
        outputs = onednn_product(integers, kernel, kernel_scale, transposed)
        return tf.cast(outputs * (peak / LARGEST), dtype), gradient

    shape = ops.shape(inputs)
    outputs = product(tf.reshape(inputs, (-1, shape[-1])))
    return tf.reshape(outputs, (*shape[:-1], kernel_scale.shape[0]))


def onednn_product(integers, kernel, kernel_scale, transposed: bool):
    """Product of 8-bit integers, `[N, I]` with `[I, O]`, divided by scales `[O]`.

    In float32: bfloat16 with several scales would be two hundred times as slow.
    """
    import tensorflow as tf
    from tensorflow.python.framework import op_def_library

    # What the integers from -LARGEST to LARGEST stand for.
    ends = tf.constant(LARGEST), LARGEST / kernel_scale
    outputs = op_def_library.apply_op(
        KERNEL,
        name="int8_product",
        device_inputs=[
            tf.bitcast(integers, "qint8"),
            tf.bitcast(kernel, "qint8"),
            tf.zeros_like(kernel_scale),
        ],
        host_inputs=[-ends[0], ends[0], -ends[1], ends[1]],
        Tdevice_outputs=[tf.float32],
        Thost_outputs=[],
        T1=tf.qint8,
        T2=tf.qint8,
        Tbias=tf.float32,
        U=tf.float32,
        Tout=tf.float32,
        transpose_a=False,
        transpose_b=transposed,
        # It would remember the kernel of the first call.
        is_weight_const=False,
        is_bias_const=False,
        fused_ops=["BiasAdd", "Dequantize"],
        input_quant_mode="SCALED",
        output_quant_mode="SCALED",
        leakyrelu_alpha=0.2,
    )
    return outputs[0][0]
