"""Adam, with right updates from the gradients of embeddings, and with averages."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend import apply_adam
from keras_attnvariants.backend import dense
from keras_attnvariants.backend import has_adam
from keras_attnvariants.backend.private import adam_moments
from keras_attnvariants.backend.private import optimizer_index
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Adam(keras.optimizers.Adam):
    """Adam whose updates do not depend on how a gradient is stored.

    On TensorFlow the gradient of an embedding lists a row for each token of the batch,
    and a token that occurs twice has two rows. Keras squares them apart, in the second
    moments and in the norm for clipping, where their sum is to be squared, as it is in
    a gradient without a list and on JAX. Updates are one operation for each variable
    where the backend has it.
    """

    def apply(
        self,
        grads: Sequence[Tensor],
        trainable_variables: Sequence[keras.Variable] | None = None,
    ) -> None:
        grads = [g if g is None else dense(g) for g in grads]
        step = ops.cast(self.iterations + 1, "float32")
        powers = tuple(ops.power(beta, step) for beta in self._betas)
        # They are tensors of one graph: neither Keras nor TensorFlow is to track them.
        object.__setattr__(self, "_powers", powers)
        super().apply(grads, trainable_variables)

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        if self.amsgrad or not has_adam(variable):
            super().update_step(gradient, variable, learning_rate)
            return
        apply_adam(
            variable,
            adam_moments(self, variable),
            gradient,
            learning_rate,
            self._betas,
            self._powers,
            self.epsilon,
        )

    @property
    def _betas(self) -> tuple[float, float]:
        return self.beta_1, self.beta_2


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class AveragingAdam(Adam):
    """Adam that keeps an exponential moving average of the weights.

        average_1 = w_1,   average_t = momentum * average_(t - 1) + (1 - momentum) * w_t

    as with `use_ema` of Keras' optimizers, which however overwrites the weights with
    their averages at the end of every `fit`, so that a run of several would go on from
    there. Here the weights are left alone.

    Args:
        momentum: between 0 and 1.
        **kwargs: as in `keras.optimizers.Adam`.

    Attributes:
        averages: variables, in the order of the trainable ones. They are among the
            `variables` of the optimizer.
    """

    def __init__(self, momentum: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.averages: list[keras.Variable] = []

    def build(self, variables: list[keras.Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self.averages = self.add_optimizer_variables(variables, "average")
        for variable, average in zip(variables, self.averages, strict=True):
            # What it stays if the loss does not depend on it. JAX shares no array.
            average.assign(ops.copy(variable))

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Tensor
    ) -> None:
        super().update_step(gradient, variable, learning_rate)
        average = self.averages[optimizer_index(self, variable)]
        share = ops.where(ops.equal(self.iterations, 0), 1.0, 1.0 - self.momentum)
        change = ops.subtract(variable, average)
        self.assign_add(average, ops.multiply(ops.cast(share, change.dtype), change))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum}
