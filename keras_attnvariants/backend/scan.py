"""Loops over time, and values with custom gradients.

The gradient of a scan works on every backend, compiled or not. On TensorFlow,
`keras.ops.scan` has no gradient under XLA and takes no nested state. On JAX,
`keras.ops.while_loop` has no gradient.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor

# Takes the state and one slice of the inputs; returns the new state and the output.
Step = Callable[[NestedTensors, NestedTensors], tuple[NestedTensors, NestedTensors]]

# Takes the gradients of the outputs and the saved tensors; returns those of the inputs.
Gradient = Callable[[Any, Any], NestedTensors]


def scan(
    step: Step,
    initial: NestedTensors,
    inputs: NestedTensors,
    reverse: bool = False,
) -> tuple[NestedTensors, NestedTensors]:
    """Runs `state, output = step(state, input)` along the first axis of the inputs.

    State, inputs and outputs may each be a tensor, or dicts, lists and tuples of
    tensors. The state keeps its structure, shapes and dtypes. Lengths may be dynamic.

    Args:
        step: function of the state and of one slice of the inputs.
        initial: the state before the first step.
        inputs: tensors `[T, ...]`, at least one. Under XLA on TensorFlow, `T` is
            at least 1.
        reverse: whether to start with the last input. Outputs keep the place of
            their inputs.

    Returns:
        The state after the last step, and the outputs of all steps `[T, ...]`.

    Raises:
        ValueError: the backend is neither TensorFlow nor JAX.

    Example:

    >>> from keras import ops
    >>> total, sums = scan(lambda s, x: (s + x, s + x), ops.zeros(()), ops.ones((3,)))
    >>> [float(x) for x in sums]
    [1.0, 2.0, 3.0]
    """
    if name() == "tensorflow":
        return tensorflow_scan(step, initial, inputs, reverse)
    import jax

    state, outputs = jax.lax.scan(step, initial, inputs, reverse=reverse)
    return state, outputs


def tensorflow_scan(
    step: Step, initial: NestedTensors, inputs: NestedTensors, reverse: bool
) -> tuple[NestedTensors, NestedTensors]:
    """`scan` as `tf.while_loop`; XLA needs its bound on iterations for gradients."""
    import tensorflow as tf

    tree = keras.tree
    initial = tree.map_structure(tf.convert_to_tensor, initial)
    inputs = tree.map_structure(tf.convert_to_tensor, inputs)
    first = tree.flatten(inputs)[0]
    length = first.shape[0] if first.shape[0] is not None else tf.shape(first)[0]

    # The loop must know the form of a step's results. A graph drops this extra step.
    after, output = step(initial, tree.map_structure(zeros_like_a_slice, inputs))
    tree.assert_same_structure(initial, after)

    sources = tree.map_structure(
        lambda x: tf.TensorArray(x.dtype, length, element_shape=x.shape[1:]).unstack(x),
        inputs,
    )
    results = tree.map_structure(
        lambda x: tf.TensorArray(x.dtype, length, element_shape=x.shape), output
    )

    def body(
        time: Tensor, state: NestedTensors, results: NestedTensors
    ) -> tuple[Tensor, NestedTensors, NestedTensors]:
        place = length - 1 - time if reverse else time
        slices = tree.map_structure(lambda a: a.read(place), sources)
        state, output = step(state, slices)
        results = tree.map_structure(lambda a, x: a.write(place, x), results, output)
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


def zeros_like_a_slice(x: Tensor) -> Tensor:
    """Zeros of the shape of `x[0]`, even if `x` is empty."""
    import tensorflow as tf

    return tf.ensure_shape(tf.zeros(tf.shape(x)[1:], x.dtype), x.shape[1:])


def common_shape(first: Tensor, second: Tensor) -> Shape:
    """The shape of two tensors, `None` where only one of them has a known size."""
    return first.shape.most_specific_compatible_shape(second.shape)


def with_gradient(
    outputs: NestedTensors,
    inputs: NestedTensors,
    gradient: Gradient,
    saved: NestedTensors = (),
) -> NestedTensors:
    """The outputs as a function of the inputs, with a given gradient.

    Args:
        outputs: nested float tensors, computed in any way.
        inputs: nested float tensors that gradients flow to. Their values are not used.
        gradient: function of the gradients of the outputs, in their structure, and of
            `saved`. Returns the gradients of the inputs, in the structure of `inputs`.
        saved: nested float tensors that `gradient` needs; it must use no others. None
            of them gets a gradient, and neither do those that made the outputs.

    Example:

    >>> x = ops.ones((2,))
    >>> y = with_gradient(2 * x, x, lambda gradient, _: 2 * gradient)
    >>> [float(value) for value in y]
    [2.0, 2.0]
    """
    tree = keras.tree
    counts = [len(tree.flatten(part)) for part in (inputs, outputs)]
    fixed = tree.map_structure(ops.stop_gradient, (outputs, saved))

    def attached(*flat: Any) -> Any:
        others = flat[counts[0] :]
        kept = tree.pack_sequence_as(saved, list(others[counts[1] :]))

        def backward(*upstream: Any) -> Any:
            given = tree.pack_sequence_as(outputs, tree.flatten(upstream))
            found = tree.flatten(gradient(given, kept))
            return (*found, *map(ops.zeros_like, others))

        values = others[: counts[1]]
        return (values if len(values) > 1 else values[0]), backward

    found = ops.custom_gradient(attached)(*tree.flatten((inputs, fixed)))
    return tree.pack_sequence_as(outputs, tree.flatten(found))
