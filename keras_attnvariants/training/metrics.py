"""Metrics over the real tokens of padded batches."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Perplexity(keras.metrics.SparseCategoricalCrossentropy):
    """Perplexity: exp of the mean of `-log p[y]` over weighted positions.

    No smoothing enters, so models trained with different losses compare. Next to
    `LabelSmoothedCrossEntropy` it costs next to nothing: the compiler finds
    that both need the same cross-entropy.

    Args:
        name: name of the metric.
        dtype: dtype of the running sums; float32 if not given.

    Call arguments: as `LabelSmoothedCrossEntropy`; compile it under
    `weighted_metrics`, since under `metrics` padding would count.

    Example:

    >>> import numpy as np
    >>> metric = Perplexity()
    >>> metric.update_state(np.array([[3, 0]]), np.zeros((1, 2, 4)), np.array([[1, 0]]))
    >>> round(float(metric.result()), 4)
    4.0
    """

    def __init__(self, name: str = "perplexity", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype, from_logits=True)

    def result(self) -> Any:
        """Perplexity so far, a scalar."""
        return ops.exp(super().result())

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class TokenCount(keras.metrics.Sum):
    """Number of real target tokens: the sum of the sample weights.

    Compile it under `weighted_metrics`; the training log takes its speed from it.

    Args:
        name: name of the metric.
        dtype: dtype of the running sum; float32 if not given.
    """

    def __init__(self, name: str = "tokens", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the weights of one batch, or its positions if there are no weights."""
        if sample_weight is None:
            sample_weight = ops.ones_like(y_true, dtype=self.dtype)
        super().update_state(sample_weight)
