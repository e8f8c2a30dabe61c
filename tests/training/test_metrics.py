"""Metrics against sums over the real tokens."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.training.losses import LabelSmoothedCrossEntropy
from keras_attnvariants.training.metrics import Perplexity
from keras_attnvariants.training.metrics import TokenCount

LABELS = np.array([[3, 5, 1, 0], [2, 2, 0, 0]])
WEIGHTS = (LABELS != 0).astype("float32")


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
