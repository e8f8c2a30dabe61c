"""Gradients of one's own for values that were computed in another way."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attnvariants.utils.typing import NestedTensors

# Of the gradients of the outputs, and of what was saved: those of the inputs.
Gradient = Callable[[Any, Any], NestedTensors]


def with_gradient(
    outputs: NestedTensors,
    inputs: NestedTensors,
    gradient: Gradient,
    saved: NestedTensors = (),
) -> NestedTensors:
    """The outputs, as a function of the inputs whose gradient is given.

    Args:
        outputs: nested float tensors, however they were computed.
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
