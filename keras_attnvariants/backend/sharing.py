"""Values that two parts of a graph need, and that are computed once.

TensorFlow merges equal operators, but neither equal loops nor equal programs.
"""

from typing import Any

import keras

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import Tensor

# The attribute of a tensor that holds what was computed from it.
_KEPT = "_keras_attnvariants_kept"


def remember(x: Tensor, other: Tensor, values: Any) -> None:
    """Keeps values that were computed from two tensors of a TensorFlow graph.

    Nothing is kept of eager tensors, nor on other backends, where XLA finds what is
    computed twice.

    Args:
        x: with which the values are kept, as long as it lives.
        other: the other tensor.
        values: nested tensors.
    """
    if name() != "tensorflow":
        return
    import tensorflow as tf

    parts = [x, *keras.tree.flatten(values)]
    # Those of a graph within this one could not be read outside of it.
    if all(map(tf.is_symbolic_tensor, parts)) and len({id(p.graph) for p in parts}) < 2:
        setattr(x, _KEPT, (other, values))


def remembered(x: Tensor, other: Tensor) -> Any:
    """What was computed from these very tensors, or `None`."""
    first, values = getattr(x, _KEPT, (None, None))
    return values if first is other else None
