"""Label-smoothed cross-entropy over padded batches of token ids.

Logits are the largest tensor of a training step. They are read where they are, in
their own dtype, by two programs that XLA compiles: one for the loss, one for its
gradient. Nothing else of their size is made.
"""

import functools
from typing import Any

import keras
from keras import ops

from keras_attnvariants.backend import jit
from keras_attnvariants.utils.checks import check_rate


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
        check_rate("smoothing", smoothing)
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.smoothing = smoothing
        self.pad_id = pad_id
        self._reduced = GivenLoss(reduction=reduction, dtype="float32")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Loss of a batch; the inherited method would copy all logits to float32."""
        losses = self.call(y_true, ops.convert_to_tensor(y_pred))
        return self._reduced(losses, losses, sample_weight)

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


class GivenLoss(keras.losses.Loss):
    """Reduces losses that have been computed already."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return y_pred


def smoothed_cross_entropy(logits, labels, smoothing: float, pad_id: int):
    """Smoothed cross-entropy of every position, with a gradient in closed form.

    The target distribution is never formed: with `Z = logsumexp(x)`, the sum over the
    other classes is `(V - 2) * Z - sum of x[v]`, and the gradient is a multiple of
    `softmax(x)` less the target distribution.

    Args:
        logits: floats `[B, T, V]`.
        labels: int32 `[B, T]`.
        smoothing: mass `e` taken from the label.
        pad_id: id of the padding class, which has no mass.

    Returns:
        float32 `[B, T]`.
    """
    classes = logits.shape[-1]
    share = smoothing / classes
    mass = 1.0 - smoothing + share * (classes - 2)

    @ops.custom_gradient
    def loss(x):
        normalizer, at_label, total = compiled(statistics)(x, labels)
        others = total - at_label - ops.cast(x[..., pad_id], "float32")
        value = mass * normalizer - (1.0 - smoothing) * at_label - share * others

        def gradient(upstream):
            factors = (mass * upstream, (1.0 - smoothing) * upstream, share * upstream)
            return compiled(slope)(x, labels, normalizer, *factors, pad_id)

        return value, gradient

    return loss(logits)


@functools.cache
def compiled(function):
    """The function, compiled for as many shapes as it is called with."""
    return jit(function)


def statistics(logits, labels):
    """`logsumexp` of the logits, the logit of the label, the sum: float32 `[B, T]`."""
    x = ops.cast(logits, "float32")
    highest = ops.max(x, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(x - highest), axis=-1)
    at_label = ops.take_along_axis(x, labels[..., None], axis=-1)
    return highest[..., 0] + ops.log(total), at_label[..., 0], ops.sum(x, axis=-1)


def slope(logits, labels, normalizer, mass, at_label, elsewhere, pad_id):
    """`mass * softmax` less `at_label` there, 0 at padding and `elsewhere` elsewhere.

    Args:
        logits: floats `[B, T, V]`.
        labels: int32 `[B, T]`.
        normalizer, mass, at_label, elsewhere: float32 `[B, T]`.
        pad_id: id of the padding class.

    Returns:
        `[B, T, V]` in the dtype of the logits.
    """
    parts = (labels, normalizer, mass, at_label, elsewhere)
    labels, normalizer, mass, at_label, elsewhere = (part[..., None] for part in parts)
    classes = ops.arange(logits.shape[-1])
    target = ops.where(classes == pad_id, 0.0, elsewhere)
    target = ops.where(classes == labels, at_label, target)
    probabilities = ops.exp(ops.cast(logits, "float32") - normalizer)
    return ops.cast(mass * probabilities - target, logits.dtype)
