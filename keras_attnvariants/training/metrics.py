"""Metrics over the real tokens of padded batches."""

from typing import Any

import keras
from keras import ops

from keras_attnvariants.training.losses import negative_log_probabilities
from keras_attnvariants.training.losses import token_weights


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Perplexity(keras.metrics.Mean):
    """Perplexity: exp of the mean of `-log p[y]` over real tokens.

    No smoothing enters, so models trained with different losses compare. Padding does
    not count, with and without sample weights.

    Args:
        name: name of the metric.
        dtype: dtype of the running sums; float32 if not given.
        pad_id: id of padding in the labels.

    Call arguments: as `LabelSmoothedCrossEntropy`. Sample weights are used if the
    metric is compiled under `weighted_metrics`.

    Example:

    >>> import numpy as np
    >>> metric = Perplexity()
    >>> metric.update_state(np.array([[3, 0]]), np.zeros((1, 2, 4)))
    >>> round(float(metric.result()), 4)
    4.0
    """

    def __init__(
        self, name: str = "perplexity", dtype: Any = None, pad_id: int = 0
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.pad_id = pad_id

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add `-log p[y]` of every real token of a batch."""
        logits = ops.convert_to_tensor(y_pred)
        labels = ops.cast(ops.convert_to_tensor(y_true), "int32")
        losses = negative_log_probabilities(logits, labels)
        super().update_state(losses, token_weights(labels, self.pad_id, sample_weight))

    def result(self) -> Any:
        """Perplexity so far, a scalar."""
        return ops.exp(super().result())

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class TokenCount(keras.metrics.Sum):
    """Number of real target tokens; with sample weights, the sum of theirs.

    The training log takes its speed from it.

    Args:
        name: name of the metric.
        dtype: dtype of the running sum; float32 if not given.
        pad_id: id of padding in the labels.
    """

    def __init__(
        self, name: str = "tokens", dtype: Any = None, pad_id: int = 0
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.pad_id = pad_id

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the real tokens of one batch."""
        labels = ops.convert_to_tensor(y_true)
        super().update_state(token_weights(labels, self.pad_id, sample_weight))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}
