"""Losses against a one-hot reference; metrics against sums over the real tokens."""

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.losses import Perplexity
from keras_attnvariants.training.losses import TokenCount

LABELS = np.array([[3, 5, 1, 0], [2, 2, 0, 0]])
WEIGHTS = (LABELS != 0).astype("float32")


def distribution(labels, classes, smoothing):
    """Target distribution of every position, one-hot style, [B, T, V]."""
    target = np.full((*labels.shape, classes), smoothing / classes)
    np.put_along_axis(target, labels[..., None], 1.0 - smoothing, axis=-1)
    target[..., 0] = 0.0
    return target * (labels != 0)[..., None]


def reference(labels, logits, smoothing, weights):
    """Mean over real tokens and its gradient with respect to the logits."""
    logits = logits.astype("float64")
    target = distribution(labels, logits.shape[-1], smoothing)
    shifted = logits - logits.max(-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    value = -(target * log_p).sum(-1)
    slope = target.sum(-1, keepdims=True) * np.exp(log_p) - target
    total = weights.sum()
    return (value * weights).sum() / total, slope * weights[..., None] / total


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_value_and_gradient(smoothing, dtype):
    logits = np.random.default_rng(0).normal(0, 3, (2, 4, 7))
    logits = logits.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    loss = LabelSmoothedCrossEntropy(smoothing)
    x = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(LABELS, x, sample_weight=WEIGHTS)
    gradient = tape.gradient(value, x)
    expected, slope = reference(LABELS, logits, smoothing, WEIGHTS)
    assert value.dtype == tf.float32 and gradient.dtype == x.dtype
    np.testing.assert_allclose(float(value), expected, rtol=1e-5)
    # The gradient is rounded once, to the dtype of the logits.
    tolerance = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 4e-3}[dtype]
    np.testing.assert_allclose(
        tf.cast(gradient, "float64"), slope, rtol=tolerance, atol=1e-6
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_logits_are_never_copied_to_float32(dtype):
    loss = LabelSmoothedCrossEntropy(0.1)

    def with_gradient(labels, logits, weights):
        value = loss(labels, logits, weights)
        return value, tf.gradients(value, logits)

    shape = (*LABELS.shape, 7)
    graph = tf.function(with_gradient).get_concrete_function(
        tf.TensorSpec(LABELS.shape, "int32"),
        tf.TensorSpec(shape, dtype),
        tf.TensorSpec(LABELS.shape, "float32"),
    )
    tensors = [tensor for op in graph.graph.get_operations() for tensor in op.outputs]
    whole = [t for t in tensors if t.shape.num_elements() == np.prod(shape)]
    assert len(whole) >= 2
    assert {tensor.dtype.name for tensor in whole} == {dtype}


def test_padding_label_has_no_loss_even_without_weights():
    logits = np.random.default_rng(1).normal(size=(1, 2, 5)).astype("float32")
    loss = LabelSmoothedCrossEntropy(0.1, reduction="sum")
    both = loss(np.array([[4, 0]]), logits)
    np.testing.assert_allclose(both, loss(np.array([[4]]), logits[:, :1]), rtol=1e-6)


@pytest.mark.parametrize(
    "reduction", ["mean_with_sample_weight", "mean", "sum_over_batch_size", "sum"]
)
@pytest.mark.parametrize("sentence_weights", [None, np.array([1.0, 3.0])])
def test_more_padding_changes_no_reduction(reduction, sentence_weights):
    logits = np.random.default_rng(1).normal(size=(2, 22, 7)).astype("float32")
    loss = LabelSmoothedCrossEntropy(0.1, reduction=reduction)
    values = [
        float(
            loss(
                np.pad(LABELS, ((0, 0), (0, columns))),
                logits[:, : 4 + columns],
                sentence_weights,
            )
        )
        for columns in (0, 6, 18)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-6)
    # The same over the real tokens alone, by Keras itself.
    real = LABELS != 0
    weights = np.ones((2, 4)) if sentence_weights is None else sentence_weights[:, None]
    alone = keras.losses.SparseCategoricalCrossentropy(True, reduction=reduction)
    weights = np.broadcast_to(weights, LABELS.shape)[real]
    ours = LabelSmoothedCrossEntropy(reduction=reduction)
    np.testing.assert_allclose(
        ours(LABELS, logits[:, :4], sentence_weights),
        alone(LABELS[real], logits[:, :4][real], weights),
        rtol=1e-5,
    )


def test_large_logits_are_finite():
    logits = np.array([[[1e4, -1e4, 0.0, 5.0, 1e4, 0.0]]], "float32")
    labels = np.array([[1]])
    expected, _ = reference(labels, logits, 0.1, np.ones((1, 1)))
    value = LabelSmoothedCrossEntropy(0.1)(labels, logits, np.ones((1, 1)))
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_batch_of_padding_only_gives_zero():
    loss = LabelSmoothedCrossEntropy(0.1)
    zeros = np.zeros((1, 3), "int32")
    assert float(loss(zeros, np.ones((1, 3, 5), "float32"), np.zeros((1, 3)))) == 0.0


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_out_of_range_is_refused(smoothing):
    with pytest.raises(ValueError, match=r"`smoothing`.*Received: "):
        LabelSmoothedCrossEntropy(smoothing)


def test_loss_survives_serialization():
    loss = LabelSmoothedCrossEntropy(0.2, pad_id=1)
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert copy.get_config() == loss.get_config()


def test_perplexity_is_over_weighted_tokens_of_all_batches():
    generator = np.random.default_rng(2)
    metric, nll = Perplexity(), []
    for labels in (LABELS, LABELS[::-1, ::-1]):
        logits = generator.normal(size=(2, 4, 7)).astype("float32")
        weights = (labels != 0).astype("float32")
        metric.update_state(labels, logits, weights)
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        picked = np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
        nll.extend(-picked[weights > 0])
    np.testing.assert_allclose(metric.result(), np.exp(np.mean(nll)), rtol=1e-5)
    copy = Perplexity.from_config(metric.get_config())
    assert copy.name == "perplexity"


def test_perplexity_takes_from_the_loss_what_both_need():
    loss, metric = LabelSmoothedCrossEntropy(0.1), Perplexity()

    def both(labels, logits):
        value = loss(labels, logits)
        metric.update_state(labels, logits)
        return value

    def loops(function):
        graph = tf.function(function).get_concrete_function(*specs).graph
        return sum(op.type.endswith("While") for op in graph.get_operations())

    specs = tf.TensorSpec((None, None), "int32"), tf.TensorSpec((None, None, 7))
    assert loops(both) == loops(lambda *batch: loss(*batch)) > 0
    alone = Perplexity()
    logits = np.random.default_rng(2).normal(size=(2, 4, 7)).astype("float32")
    alone.update_state(LABELS, logits)
    tf.function(both)(tf.constant(LABELS, "int32"), tf.constant(logits))
    assert float(metric.result()) == float(alone.result())


def test_token_count_leaves_out_padding_and_sums_weights():
    metric = TokenCount()
    metric.update_state(LABELS, np.zeros((2, 4, 7)))
    assert float(metric.result()) == 5
    metric.update_state(LABELS, np.zeros((2, 4, 7)), 0.5 * np.ones((2, 4)))
    assert float(metric.result()) == 7.5


@pytest.mark.parametrize("columns", [0, 6, 18])
def test_padding_does_not_count_without_weights(columns):
    logits = np.random.default_rng(2).normal(size=(2, 4, 7)).astype("float32")
    real, alone = LABELS != 0, Perplexity()
    alone.update_state(LABELS[real][None], logits[real][None])
    padded = Perplexity(pad_id=9 if columns else 0)
    labels = np.where(real, LABELS, padded.pad_id)
    wide = ((0, 0), (0, columns))
    padded.update_state(
        np.pad(labels, wide, constant_values=padded.pad_id),
        np.pad(logits, (*wide, (0, 3)), constant_values=-1e9),
    )
    np.testing.assert_allclose(padded.result(), alone.result(), rtol=1e-6)
    assert Perplexity.from_config(padded.get_config()).pad_id == padded.pad_id
