"""Metrics over the real tokens of padded batches."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.training.losses import smoothed_cross_entropy


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Perplexity(keras.metrics.Mean):
    """Perplexity: exp of the mean of `-log p[y]` over weighted positions.

    No smoothing enters, so models trained with different losses compare.

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
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add `-log p[y]` of every position of a batch."""
        # The operations of the loss, so that the graph does the costly ones once.
        logits = ops.convert_to_tensor(y_pred)
        labels = ops.cast(ops.convert_to_tensor(y_true), "int32")
        loss = smoothed_cross_entropy(logits, labels, smoothing=0.0, pad_id=0)
        super().update_state(loss, sample_weight)

    def result(self) -> Any:
        """Perplexity so far, a scalar."""
        return ops.exp(super().result())


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
