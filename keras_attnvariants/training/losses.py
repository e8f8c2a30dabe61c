"""Label-smoothed cross-entropy over padded batches of token ids."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy against a smoothed target distribution (You et al. 2020).

    With `e = smoothing` and `V` classes, the target distribution puts `1 - e` on the
    label, `e / V` on every other class and 0 on the padding class:

        loss = (1 - e) * (-log p[y]) + e / V * sum over v != y, pad of (-log p[v])

    The sum is taken as `(V - 2) * logsumexp(x) - sum of x[v]`, so no `[B, T, V]` tensor
    besides the logits is formed. Everything is computed in float32, whatever the
    dtype of the logits. A position whose label is padding has loss 0.

    Args:
        smoothing: mass `e` taken from the label, in `[0, 1)`.
        pad_id: id of the padding class.
        reduction: as in `keras.losses.Loss`. The default divides by the sum of the
            sample weights, so that weights of 1 on real tokens and 0 on padding give
            the mean over real tokens.
        name: name of the loss.

    Call arguments: labels, integers `[B, T]`; logits `[B, T, V]`; weights `[B, T]`.

    Raises:
        ValueError: `smoothing` is outside `[0, 1)`.

    Example:

    >>> import numpy as np
    >>> loss = LabelSmoothedCrossEntropy(smoothing=0.1)
    >>> labels, logits = np.array([[3, 0]]), np.zeros((1, 2, 4), "float32")
    >>> round(float(loss(labels, logits, sample_weight=np.array([[1.0, 0.0]]))), 4)
    1.317
    """

    def __init__(
        self,
        smoothing: float = 0.0,
        pad_id: int = 0,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "label_smoothed_cross_entropy",
    ) -> None:
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"`smoothing` must lie in [0, 1). Received: {smoothing}")
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.smoothing = smoothing
        self.pad_id = pad_id

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Loss of every position, `[B, T]`."""
        loss = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        if self.smoothing:
            classes = y_pred.shape[-1]
            normalizer = ops.logsumexp(y_pred, axis=-1)  # [B, T]
            label_logit = normalizer - loss
            other_logits = ops.sum(y_pred, axis=-1) - label_logit
            other_logits = other_logits - y_pred[..., self.pad_id]
            others = (classes - 2) * normalizer - other_logits
            loss = (1.0 - self.smoothing) * loss + self.smoothing / classes * others
        return ops.where(ops.equal(y_true, self.pad_id), 0.0, loss)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "smoothing": self.smoothing,
            "pad_id": self.pad_id,
        }
