"""Learning-rate schedules of the papers."""

import math
from typing import Any

import keras
from keras import ops

from keras_attnvariants.utils.checks import check_positive


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
        return {
            "hidden_dim": self.hidden_dim,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Straight line from one rate to another, constant afterwards (You et al. 2020).

        rate(s) = initial - min(s, steps) * (initial - final) / steps

    Args:
        initial: rate of the first update (`s = 0`).
        final: rate from update `steps` on.
        steps: length of the line, in updates.

    Raises:
        ValueError: an argument is not positive.

    Example:

    >>> schedule = LinearDecay(initial=3e-4, final=1e-5, steps=100_000)
    >>> round(float(schedule(50_000)), 7)
    0.000155
    """

    def __init__(self, initial: float, final: float, steps: int) -> None:
        super().__init__()
        self.initial = check_positive("initial", initial)
        self.final = check_positive("final", final)
        self.steps = check_positive("steps", steps)

    def __call__(self, step: Any) -> Any:
        done = ops.minimum(ops.cast(step, "float32") / self.steps, 1.0)
        return self.initial - done * (self.initial - self.final)

    def get_config(self) -> dict[str, Any]:
        return {"initial": self.initial, "final": self.final, "steps": self.steps}
