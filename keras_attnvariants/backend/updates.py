"""The update of Adam as one operation, where the backend has one.

Keras writes it with some twenty, which are traced for each variable and read and write
the moments several times.
"""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend.compilation import name
from keras_attnvariants.utils.typing import Tensor


def has_adam(variable: Any) -> bool:
    """Whether `apply_adam` can update a variable.

    It can on TensorFlow, outside of strategies.

    Args:
        variable: of Keras or, as Keras' optimizers are given it, of TensorFlow.
    """
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    return (
        isinstance(native(variable), tf.Variable) and not tf.distribute.has_strategy()
    )


def native(variable: Any) -> Any:
    """The backend's variable, of it or of a variable of Keras."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def apply_adam(
    variable: Any,
    moments: tuple[keras.Variable, keras.Variable],
    gradient: Tensor,
    learning_rate: Tensor,
    betas: tuple[float, float],
    powers: tuple[Tensor, Tensor],
    epsilon: float,
) -> None:
    """Changes a variable and its moments as `keras.optimizers.Adam` does.

    Args:
        variable: what is trained, as for `has_adam`.
        moments: averages of its gradients and of their squares.
        gradient: of the shape of the variable.
        learning_rate: scalar.
        betas: share that each average keeps.
        powers: float32 scalars, `betas` to the power of the number of the update, from
            1 on.
        epsilon: is added to the root of the second moment.
    """
    import tensorflow as tf

    dtype = keras.backend.standardize_dtype(variable.dtype)
    first, second = (ops.cast(power, dtype) for power in powers)
    var, m, v = (native(x).handle for x in (variable, *moments))
    tf.raw_ops.ResourceApplyAdam(
        var=var,
        m=m,
        v=v,
        beta1_power=first,
        beta2_power=second,
        lr=ops.cast(learning_rate, dtype),
        beta1=tf.constant(betas[0], dtype),
        beta2=tf.constant(betas[1], dtype),
        epsilon=tf.constant(epsilon, dtype),
        grad=ops.cast(gradient, dtype),
    )
