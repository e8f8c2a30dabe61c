"""Label-smoothed cross-entropy, and metrics, over padded batches of token ids.

Logits are the largest tensor of a training step. Two programs compiled by XLA, one for
the loss and one for its gradient, read them in their own dtype and allocate no other
tensor of their size. They read blocks of rows: one program serves batches of any shape.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.registry import Saved
from keras_attnvariants.backend import check_one_replica
from keras_attnvariants.backend import jit_by_rows
from keras_attnvariants.backend import keep_result
from keras_attnvariants.backend import kept_result
from keras_attnvariants.utils.checks import check_rate
from keras_attnvariants.utils.typing import Tensor


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class LabelSmoothedCrossEntropy(Saved, keras.losses.Loss):
    """Cross-entropy against a smoothed target distribution (You et al. 2020).

    With `e = smoothing` and `V` classes, the target distribution puts `1 - e` on the
    label, `e / V` on every other class and 0 on the padding class:

        loss = (1 - e) * (-log p[y]) + e / V * sum over v != y, pad of (-log p[v])

    Everything is computed in float32, whatever the dtype of the logits. A position
    whose label is padding has loss 0 and does not count, with and without sample
    weights: more padding changes neither the loss nor its gradient. Padding is
    recognized by its id alone; a Keras mask of the logits is not read.

    Args:
        smoothing: probability `e` taken from the label, in `[0, 1)`.
        pad_id: id of the padding class.
        reduction: as in `keras.losses.Loss`, over real tokens. The default divides by
            the sum of their sample weights; without any it is the mean over them.
        name: name of the loss.

    Call arguments: labels, integers `[B, T]`; logits `[B, T, V]`; sample weights
    `[B, T]`, `[B]` or none.

    Raises:
        ValueError: `smoothing` is outside `[0, 1)`; when called, a TensorFlow strategy
            has several replicas, whose means Keras would average.

    Example:

    >>> import numpy as np
    >>> loss = LabelSmoothedCrossEntropy(smoothing=0.1)
    >>> labels, logits = np.array([[3, 0]]), np.zeros((1, 2, 4), "float32")
    >>> round(float(loss(labels, logits)), 4)
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

    def __call__(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor = None
    ) -> Tensor:
        """Loss of a batch. The inherited method would copy all logits to float32."""
        weights = token_weights(y_true, self.pad_id, sample_weight)
        losses = self.call(y_true, ops.convert_to_tensor(y_pred)) * weights
        if self.reduction in ("none", None):
            return losses
        if self.reduction == "sum":
            return ops.sum(losses)
        check_one_replica()
        if self.reduction != "mean_with_sample_weight":
            # A mean over real tokens, whatever their weights.
            weights = token_weights(y_true, self.pad_id)
        return ops.divide_no_nan(ops.sum(losses), ops.sum(weights))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        """Loss of every position, `[B, T]`."""
        labels = ops.cast(y_true, "int32")
        loss = smoothed_cross_entropy(y_pred, labels, self.smoothing, self.pad_id)
        return ops.where(ops.equal(y_true, self.pad_id), 0.0, loss)


def token_weights(labels: Tensor, pad_id: int, sample_weight: Tensor = None) -> Tensor:
    """The weight of each position: its sample weight, or 0 if its label is padding.

    Args:
        labels: integers `[B, T]`.
        pad_id: id of padding.
        sample_weight: floats `[B, T]`, or `[B]` for whole sentences; `None` for 1.

    Returns:
        float32 `[B, T]`.
    """
    real = ops.cast(ops.not_equal(labels, pad_id), "float32")
    if sample_weight is None:
        return real
    weights = ops.cast(ops.convert_to_tensor(sample_weight), "float32")
    if len(weights.shape) < len(real.shape):
        weights = weights[..., None]  # [B, 1]
    return real * weights


def smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> Tensor:
    """Smoothed cross-entropy of every position, with a gradient in closed form.

    The target distribution is never formed: with `Z = logsumexp(x)`, the sum over the
    other classes is `(V - 2) * Z - sum of x[v]`, and the gradient is a multiple of
    `softmax(x)` less the target distribution.

    Args:
        logits: floats `[B, T, V]`.
        labels: int32 `[B, T]`.
        smoothing: probability `e` taken from the label.
        pad_id: id of the padding class, whose target probability is 0.

    Returns:
        float32 `[B, T]`.
    """
    classes = logits.shape[-1]
    share = smoothing / classes
    mass = 1.0 - smoothing + share * (classes - 2)
    rows = ops.reshape(labels, (-1,))

    @ops.custom_gradient
    def loss(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        found = normalizer, at_label, total = compiled(statistics)(x, rows)
        keep_result(logits, labels, found)
        others = total - at_label - ops.cast(x[:, pad_id], "float32")
        value = mass * normalizer - (1.0 - smoothing) * at_label - share * others

        def gradient(upstream: Tensor) -> Tensor:
            factors = (mass * upstream, (1.0 - smoothing) * upstream, share * upstream)
            return compiled(slope, pad_id)(x, rows, normalizer, *factors)

        return value, gradient

    losses = loss(ops.reshape(logits, (-1, classes)))
    return ops.reshape(losses, ops.shape(labels))


def negative_log_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """`-log p[y]` of every position, without a gradient.

    In a graph with a smoothed cross-entropy of the same tensors, the costly part is
    shared.

    Args:
        logits: floats `[B, T, V]`.
        labels: int32 `[B, T]`.

    Returns:
        float32 `[B, T]`.
    """
    found = kept_result(logits, labels)
    if found is None:
        rows = ops.reshape(logits, (-1, logits.shape[-1])), ops.reshape(labels, (-1,))
        found = compiled(statistics)(*rows)
    normalizer, at_label, _ = found
    return ops.reshape(normalizer - at_label, ops.shape(labels))


@functools.cache
def compiled(function: Callable[..., Any], *options: int) -> Callable[..., Any]:
    """A function of rows, compiled once, with the options as its first arguments."""
    return jit_by_rows(functools.partial(function, *options))


def statistics(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`logsumexp` of the logits, logit of the label, sum of the logits.

    Each is float32 `[N]`, for logits `[N, V]` and labels `[N]`.
    """
    x = ops.cast(logits, "float32")
    at_label = ops.take_along_axis(x, labels[..., None], axis=-1)
    return ops.logsumexp(x, axis=-1), at_label[..., 0], ops.sum(x, axis=-1)


def slope(
    pad_id: int,
    logits: Tensor,
    labels: Tensor,
    normalizer: Tensor,
    mass: Tensor,
    at_label: Tensor,
    elsewhere: Tensor,
) -> Tensor:
    """Gradient of the losses: `mass * softmax - target`.

    `target` is `at_label` at the label, 0 at padding, and `elsewhere` at all other
    classes.

    Args:
        pad_id: id of the padding class.
        logits: floats `[N, V]`.
        labels: int32 `[N]`.
        normalizer, mass, at_label, elsewhere: float32 `[N]`.

    Returns:
        `[N, V]` in the dtype of the logits.
    """
    parts = (labels, normalizer, mass, at_label, elsewhere)
    labels, normalizer, mass, at_label, elsewhere = (part[..., None] for part in parts)
    classes = ops.arange(logits.shape[-1])
    target = ops.where(classes == pad_id, 0.0, elsewhere)
    target = ops.where(classes == labels, at_label, target)
    probabilities = ops.exp(ops.cast(logits, "float32") - normalizer)
    return ops.cast(mass * probabilities - target, logits.dtype)


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class Perplexity(Saved, keras.metrics.Mean):
    """Perplexity: exp of the mean of `-log p[y]` over real tokens.

    It has no smoothing, so models trained with different losses can be compared.
    Padding does not count, with and without sample weights.

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


@keras.saving.register_keras_serializable(package="keras_attnvariants")
class TokenCount(Saved, keras.metrics.Sum):
    """Number of real target tokens; with sample weights, the sum of their weights.

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
