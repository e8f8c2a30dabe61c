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

    Everything is computed in float32, whatever the dtype of the logits. A position
    whose label is padding has loss 0.

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
        labels = ops.cast(y_true, "int32")
        loss = smoothed_cross_entropy(y_pred, labels, self.smoothing, self.pad_id)
        return ops.where(ops.equal(y_true, self.pad_id), 0.0, loss)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "smoothing": self.smoothing,
            "pad_id": self.pad_id,
        }


def smoothed_cross_entropy(logits, labels, smoothing: float, pad_id: int):
    """Smoothed cross-entropy of every position, with a gradient in closed form.

    The target distribution is never formed: with `Z = logsumexp(x)`, the sum over the
    other classes is `(V - 2) * Z - sum of x[v]`, and the gradient is a multiple of
    `softmax(x)`, less a constant, less one more number at the label and at padding.

    Args:
        logits: float32 `[B, T, V]`.
        labels: int32 `[B, T]`.
        smoothing: mass `e` taken from the label.
        pad_id: id of the padding class, which has no mass.

    Returns:
        float32 `[B, T]`.
    """
    classes = logits.shape[-1]
    share = smoothing / classes
    mass = 1.0 - smoothing + share * (classes - 2)
    labels = labels[..., None]  # [B, T, 1]

    @ops.custom_gradient
    def loss(x):
        highest = ops.max(x, axis=-1, keepdims=True)
        exponentials = ops.exp(x - highest)
        total = ops.sum(exponentials, axis=-1, keepdims=True)
        normalizer = highest + ops.log(total)
        at_label = ops.take_along_axis(x, labels, axis=-1)
        others = ops.sum(x, axis=-1, keepdims=True) - at_label
        others = others - x[..., pad_id : pad_id + 1]
        value = mass * normalizer - (1.0 - smoothing) * at_label - share * others

        def gradient(upstream):
            slope = exponentials * (upstream * mass / total) - upstream * share
            at_label = upstream * (share - 1.0 + smoothing)
            return add_at(
                slope,
                ops.concatenate([labels, ops.full_like(labels, pad_id)], axis=-1),
                ops.concatenate([at_label, upstream * share], axis=-1),
            )

        return value, gradient

    return loss(logits)[..., 0]


def add_at(x, index, change):
    """`x` `[B, T, V]` with `change` `[B, T, N]` added at `index` `[B, T, N]`.

    The entries of `index` at a position differ, or their changes are 0.
    """
    shape = ops.shape(x)
    rows = shape[0] * shape[1]
    changed = ops.take_along_axis(x, index, axis=-1) + change
    places = ops.reshape(index, (rows, -1))
    row = ops.broadcast_to(ops.arange(rows)[:, None], ops.shape(places))
    places = ops.reshape(ops.stack([row, places], axis=-1), (-1, 2))
    x = ops.reshape(x, (rows, shape[2]))
    x = ops.scatter_update(x, places, ops.reshape(changed, (-1,)))
    return ops.reshape(x, shape)
