"""Compiling a function of tensors on whichever backend Keras runs."""

import keras


def name() -> str:
    """The name of the Keras backend in use: `"tensorflow"`, `"jax"`, …"""
    return keras.config.backend()


def jit(function, xla: bool = True):
    """Compiles a function of tensors; one compilation per set of input shapes.

    Args:
        function: takes and returns (nested) tensors; arguments that are not
            tensors belong into a closure.
        xla: on TensorFlow, whether XLA compiles the graph. JAX always does.

    Returns:
        A callable with the signature of `function`.

    Raises:
        ValueError: the backend has no compiler known here.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        # Code here is written with `ops.while_loop`, so there is nothing to rewrite.
        return tf.function(
            function, jit_compile=xla, reduce_retracing=not xla, autograph=False
        )
    if name() == "jax":
        import jax

        return jax.jit(function)
    raise ValueError(
        f"`jit` knows the backends 'tensorflow' and 'jax'. Received: {name()!r}"
    )


def in_xla() -> bool:
    """Whether what is computed now is traced for XLA. With JAX, always."""
    if name() != "tensorflow":
        return True
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    graph = tf.compat.v1.get_default_graph()
    return control_flow_util.GraphOrParentsInXlaContext(graph)


def gains_from_xla(model) -> bool:
    """Whether a search is faster when XLA compiles it.

    Not on a CPU where a model computes in half precision or with 8-bit integers: XLA
    has no fast products of these there, and TensorFlow does.

    Args:
        model: a model. Without dtype or quantization it counts as one of float32.
    """
    if name() != "tensorflow":
        return True
    import tensorflow as tf

    dtype = getattr(model, "compute_dtype", "float32")
    quantized = getattr(model, "quantization", None) is not None
    is_narrow = dtype != "float32" or quantized
    return not is_narrow or bool(tf.config.list_physical_devices("GPU"))
