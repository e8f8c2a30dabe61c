"""Adam with correct updates of embeddings, moving averages, and schedules."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend import apply_adam
from keras_attnvariants.backend import dense
from keras_attnvariants.backend import has_adam
from keras_attnvariants.backend import local_value
from keras_attnvariants.backend.private import adam_moments
from keras_attnvariants.backend.private import moving_averages
from keras_attnvariants.training.callbacks import Logs
from keras_attnvariants.training.state import assign_arrays
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Adam(keras.optimizers.Adam):
    """Adam whose updates do not depend on how a gradient is stored.

    On TensorFlow the gradient of an embedding lists a row for each token of the batch,
    and a token that occurs twice has two rows. Keras squares the rows separately, in
    the second moments and in the norm for clipping. Their sum must be squared instead,
    as it is in a dense gradient and on JAX. Where the backend can, an update is one
    operation per variable.

    With `use_ema`, the weights stay as they are at the end of `fit`. Keras overwrites
    them with their averages, from which the next `fit` of a run would continue.
    """

    def apply(
        self,
        grads: Sequence[Tensor],
        trainable_variables: Sequence[keras.Variable] | None = None,
    ) -> None:
        grads = [g if g is None else dense(g) for g in grads]
        step = ops.cast(self.iterations + 1, "float32")
        powers = ops.power(self.beta_1, step), ops.power(self.beta_2, step)
        # They are tensors of one graph: neither Keras nor TensorFlow is to track them.
        object.__setattr__(self, "_powers", powers)
        super().apply(grads, trainable_variables)

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        is_plain = not self.amsgrad and has_adam(variable)
        if not is_plain or (moments := adam_moments(self, variable)) is None:
            super().update_step(gradient, variable, learning_rate)
            return
        apply_adam(self, variable, moments, gradient, learning_rate, self._powers)

    def finalize_variable_values(self, var_list: Sequence[keras.Variable]) -> None:
        """Leaves the weights as they are."""


class MovingAverage(keras.callbacks.Callback):
    """Puts averages in place of the weights for validations and the best model.

    It comes first among the callbacks. Code that saves the state of the run must call
    `restore_weights` before. Without averages in the optimizer it does nothing.
    """

    _has_averages = False

    def on_test_begin(self, logs: Logs = None) -> None:
        self._swap(to_averages=True)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self._swap(to_averages=True)  # there may be no validation data

    def restore_weights(self) -> None:
        """Gives the model its own weights back."""
        self._swap(to_averages=False)

    def _swap(self, to_averages: bool) -> None:
        optimizer = self.model.optimizer
        # Mixed float16 wraps the optimizer.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        if self._has_averages == to_averages or not optimizer.use_ema:
            return
        variables = self.model.trainable_variables, moving_averages(optimizer)
        weights, averages = (to_arrays(group) for group in variables)
        assign_arrays(variables[0], averages, "average")
        assign_arrays(variables[1], weights, "weight")
        self._has_averages = to_averages


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class NoamSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then inverse square root (Vaswani et al. 2017, Eq. 3).

        rate(s) = scale * hidden_dim^-0.5 * min(s^-0.5, s * warmup_steps^-1.5)

    Steps count from 1: the first update, Keras' step 0, has `s = 1`. The peak, at
    `s = warmup_steps`, is `scale * (hidden_dim * warmup_steps)^-0.5`.

    Args:
        hidden_dim: width of the model.
        warmup_steps: updates until the peak.
        scale: factor on the whole curve.

    Raises:
        ValueError: an argument is not positive.

    Example:

    >>> schedule = NoamSchedule(hidden_dim=512, warmup_steps=4000)
    >>> round(float(schedule(3999)), 7)
    0.0006988
    """

    def __init__(
        self, hidden_dim: int, warmup_steps: int = 4000, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.hidden_dim = check_positive("hidden_dim", hidden_dim)
        self.warmup_steps = check_positive("warmup_steps", warmup_steps)
        self.scale = check_positive("scale", scale)

    @classmethod
    def from_peak(cls, peak: float, warmup_steps: int = 4000) -> "NoamSchedule":
        """The same curve, given by its highest rate.

        Example:

        >>> round(float(NoamSchedule.from_peak(1e-3, warmup_steps=300)(299)), 6)
        0.001
        """
        scale = check_positive("peak", peak) * math.sqrt(
            check_positive("warmup_steps", warmup_steps)
        )
        return cls(hidden_dim=1, warmup_steps=warmup_steps, scale=scale)

    @property
    def peak(self) -> float:
        """The highest rate."""
        return float(self.scale / math.sqrt(self.hidden_dim * self.warmup_steps))

    def __call__(self, step: Any) -> Any:
        s = ops.cast(step, "float32") + 1.0
        rate = ops.minimum(ops.rsqrt(s), s * self.warmup_steps**-1.5)
        return self.scale * self.hidden_dim**-0.5 * rate

    def get_config(self) -> dict[str, Any]:
        return dict(vars(self))


def learning_rate(optimizer: keras.optimizers.Optimizer) -> float:
    """The rate of the next update, computed by this process alone."""
    updates = optimizer.iterations
    with keras.StatelessScope(state_mapping=[(updates, local_value(updates))]):
        return float(optimizer.learning_rate)
