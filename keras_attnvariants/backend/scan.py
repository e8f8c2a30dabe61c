"""A loop over time whose gradient works on every backend, compiled or not.

`keras.ops.scan` has no gradient under XLA on TensorFlow, and takes no nested state
there; `keras.ops.while_loop` has no gradient on JAX.
"""

import keras

from keras_attnvariants.backend.compilation import name


def scan(step, initial, inputs):
    """Runs `state, output = step(state, input)` along the first axis of the inputs.

    The state, each input and each output may be a tensor, or dicts, lists and tuples
    of tensors. The state keeps its structure, shapes and dtypes. Lengths may be
    dynamic.

    Args:
        step: function of the state and of one slice of the inputs.
        initial: the state before the first step.
        inputs: tensors `[T, ...]`, at least one. Under XLA on TensorFlow, `T` is
            at least 1.

    Returns:
        The state after the last step, and the outputs of all steps `[T, ...]`.

    Raises:
        ValueError: the backend has no such loop here.

    Example:

    >>> from keras import ops
    >>> total, sums = scan(lambda s, x: (s + x, s + x), ops.zeros(()), ops.ones((3,)))
    >>> [float(x) for x in sums]
    [1.0, 2.0, 3.0]
    """
    if name() == "tensorflow":
        return tensorflow_scan(step, initial, inputs)
    if name() == "jax":
        import jax

        return jax.lax.scan(step, initial, inputs)
    raise ValueError(
        f"`scan` knows the backends 'tensorflow' and 'jax'. Received: {name()!r}"
    )


def tensorflow_scan(step, initial, inputs):
    """`scan` as `tf.while_loop`; XLA needs its bound on iterations for gradients."""
    import tensorflow as tf

    tree = keras.tree
    initial = tree.map_structure(tf.convert_to_tensor, initial)
    inputs = tree.map_structure(tf.convert_to_tensor, inputs)
    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]

    # What a step returns has to be known before the loop; a graph drops this step.
    nothing = tree.map_structure(lambda x: tf.zeros(tf.shape(x)[1:], x.dtype), inputs)
    nothing = tree.map_structure(
        lambda zero, x: tf.ensure_shape(zero, x.shape[1:]), nothing, inputs
    )
    after, output = step(initial, nothing)
    tree.assert_same_structure(initial, after)

    def filled(x):
        array = tf.TensorArray(x.dtype, length, element_shape=x.shape[1:])
        return array.unstack(x)

    sources = tree.map_structure(filled, inputs)
    results = tree.map_structure(
        lambda x: tf.TensorArray(x.dtype, length, element_shape=x.shape), output
    )

    def body(time, state, results):
        state, output = step(state, tree.map_structure(lambda a: a.read(time), sources))
        results = tree.map_structure(lambda a, x: a.write(time, x), results, output)
        return time + 1, state, results

    _, state, results = tf.while_loop(
        lambda time, state, results: time < length,
        body,
        (tf.constant(0), initial, results),
        shape_invariants=(
            tf.TensorShape([]),
            tree.map_structure(common_shape, initial, after),
            tree.map_structure(lambda _: tf.TensorShape(None), results),
        ),
        maximum_iterations=length,
    )
    return state, tree.map_structure(lambda a: a.stack(), results)


def common_shape(first, second):
    """The shape of both tensors, `None` where a dimension is known of one only."""
    return first.shape.most_specific_compatible_shape(second.shape)
