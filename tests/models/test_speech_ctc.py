"""The CTC loss of the encoder's outputs."""

import itertools

import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.models import SpeechFrontEnd
from keras_attnvariants.models.speech import ctc_loss
from tests.models import tiny
from tests.reference import speech as reference

BOS = 2


def naive(logits, labels):
    """`-log p(labels)`: the sum over all paths of positions, each written out."""
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(logits.shape[-1]), repeat=len(logits)):
        written = [token for token, _ in itertools.groupby(path) if token]
        if written == list(labels):
            total += np.prod(probabilities[np.arange(len(path)), path])
    return -np.log(total)


# Positions and labels; the fourth repeats a token, the last two do not fit.
CASES = [(4, [1, 3]), (4, [3]), (3, [1, 2, 3]), (4, [1, 1, 2]), (2, [1, 1]), (0, [1])]


def batch():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(len(CASES), 4, 4)).astype("float32")
    is_real = np.arange(4) < np.array([[positions] for positions, _ in CASES])
    target_ids = np.zeros((len(CASES), 4), "int32")
    for row, (_, labels) in enumerate(CASES):
        target_ids[row, : len(labels) + 1] = [BOS, *labels]
    return logits, is_real, target_ids


def test_the_loss_is_that_of_all_paths():
    logits, is_real, target_ids = batch()
    losses = [
        naive(logits[row, :positions], labels)
        for row, (positions, labels) in enumerate(CASES[:4])
    ]
    count = sum(len(labels) + 1 for _, labels in CASES)
    expected = sum(losses) / count
    for row, loss in enumerate(losses):
        found = ctc_loss(*(x[row : row + 1] for x in (logits, is_real, target_ids)), 0)
        alone = loss / (len(CASES[row][1]) + 1)
        np.testing.assert_allclose(found, alone, rtol=1e-5)
    inputs = [ops.convert_to_tensor(x) for x in (logits, is_real, target_ids)]
    np.testing.assert_allclose(ctc_loss(*inputs, 0), expected, rtol=1e-5)


def gradient(function, x):
    """The gradient of a scalar for an array."""
    if backend.name() == "jax":
        import jax

        return np.asarray(jax.grad(function)(x))
    import tensorflow as tf

    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = function(x)
    return tape.gradient(loss, x).numpy()


def test_gradients_are_those_of_differences_and_finite():
    logits, is_real, target_ids = batch()
    is_real, target_ids = map(ops.convert_to_tensor, (is_real, target_ids))

    def loss(x):
        return ctc_loss(x, is_real, target_ids, 0)

    found = gradient(loss, logits)
    assert np.isfinite(found).all()
    for row, (positions, _) in enumerate(CASES):
        assert not found[row, positions:].any()
        assert row < 4 or not found[row].any()
    for place in ((0, 1, 2), (2, 2, 3), (3, 1, 0)):
        ends = []
        for step in (0.01, -0.01):
            moved = logits.copy()
            moved[place] += step
            ends.append(float(loss(moved)))
        np.testing.assert_allclose(found[place], (ends[0] - ends[1]) / 0.02, atol=1e-3)


@pytest.fixture(scope="module")
def model():
    model = tiny.make(source_embedding=SpeechFrontEnd(tiny.WIDTH), dropout=0.0)
    tiny.randomize(model)
    return model


def recordings():
    source_ids = reference.batch_of(9000, 4000, 1000)
    return {"source_ids": source_ids, "target_ids": tiny.inputs()["target_ids"]}


def test_a_model_adds_the_loss_in_training_alone(model):
    for layer_masks in ("num_time_masks", "num_mel_masks"):
        setattr(model.embeddings.source, layer_masks, 0)
    inputs = recordings()
    encoded, mask = model.run_encoder(ops.convert_to_tensor(inputs["source_ids"]))
    logits = model.embeddings.logits(encoded)
    expected = ctc_loss(logits, mask, ops.convert_to_tensor(inputs["target_ids"]), 0)
    model.ctc_weight = 0.3
    model(inputs, training=True)
    np.testing.assert_allclose(model.losses, [0.3 * float(expected)], rtol=1e-4)
    model(inputs, training=False)
    assert model.losses == []
    assert "ctc_weight" not in model.get_config()
    model.ctc_weight = None
    model(inputs, training=True)
    assert model.losses == []
