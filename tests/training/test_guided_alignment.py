"""Guided alignment: its loss, its effect on attention, and its refusals."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.models import Transformer
from keras_attnvariants.training import train
from keras_attnvariants.training.guided_alignment import alignment_loss
from keras_attnvariants.training.guided_alignment import guidance_of
from keras_attnvariants.training.guided_alignment import guided
from tests.models import tiny
from tests.training.toy import ToyModel
from tests.training.toy import same
from tests.training.toy import toy_config
from tests.training.toy import variables

TOKENS, LENGTH = 14, 5


def reverse_batch(number, rows=16):
    """Sources and their tokens read backwards, with links; lengths vary."""
    rng = np.random.default_rng(number)
    source = np.zeros((rows, LENGTH), "int32")
    labels, target = (np.zeros((rows, LENGTH + 1), "int32") for _ in range(2))
    links = np.zeros((rows, LENGTH + 1, LENGTH), bool)
    for row in range(rows):
        length = rng.integers(2, LENGTH + 1)
        words = rng.permutation(np.arange(4, TOKENS))[:length]
        source[row, :length] = words
        labels[row, : length + 1] = [*words[::-1], 3]
        target[row, : length + 1] = [2, *words[::-1]]
        links[row, np.arange(length), np.arange(length)[::-1]] = True
    inputs = {"source_ids": source, "target_ids": target, "alignments": links}
    return inputs, labels, (labels != 0).astype("float32")


def data(step, rows=16):
    """Endless batches, from the one with a given number on."""
    shapes = keras.tree.map_structure(
        lambda x: tf.TensorSpec(x.shape, x.dtype), reverse_batch(0, rows)
    )

    def batches():
        number = step
        while True:
            yield reverse_batch(number, rows)
            number += 1

    return tf.data.Dataset.from_generator(batches, output_signature=shapes)


def make(dropout=0.0, layers=2):
    keras.utils.set_random_seed(2)
    attention = DotProductAttention(2)
    return Transformer(
        TOKENS, layers, 16, 32, *[attention] * 3, dropout=dropout, max_length=8
    )


def fixed():
    """A model whose attention to the source is not learned."""
    return tiny.make(cross_attention=tiny.cross(length_ratio=1.0))


def trained(folder, training_data=data, dropout=0.0, layers=1, **settings):
    """A model after a run."""
    model = make(dropout, layers)
    settings = {
        "steps": 4,
        "learning_rate": 5e-3,
        "epsilon": 1e-3,
        "clipnorm": None,
        "validate_every": 100,
        **settings,
    }
    train(model, None, training_data, folder, toy_config(**settings), verbose=0)
    return model


def alignment_error(model):
    """Share of target tokens whose largest weight is not at their link."""
    inputs, _, _ = reverse_batch(999, 64)
    weights = model.attention_scores(inputs)["decoder_0"]["cross"].numpy().mean(1)
    links = inputs["alignments"]
    linked = links.any(-1)
    return np.mean(weights.argmax(-1)[linked] != links.argmax(-1)[linked])


def reference(weights, links, target_ids, weight):
    """The loss of a batch, one row after another."""
    total = 0.0
    for i, j in np.argwhere(links.any(-1)):
        gold = links[i, j] / links[i, j].sum()
        total -= (gold * np.log(weights[i, j] + 1e-9)).sum()
    return weight * total / (target_ids != 0).sum()


def random_case(rows, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(6), (rows, 5)).astype("float32")
    links = rng.random((rows, 5, 6)) < 0.3
    target_ids = rng.integers(4, TOKENS, (rows, 5))
    for row, length in enumerate(rng.integers(1, 6, rows)):
        target_ids[row, length:], links[row, length:] = 0, False
    links[0, 0] = False
    return weights, links, target_ids


def loss_of(weights, links, target_ids):
    inputs = {"alignments": links, "target_ids": target_ids}
    return float(alignment_loss(weights, inputs, weight=0.3, pad_id=0))


def test_the_loss_is_that_of_the_reference():
    for seed in range(5):
        case = random_case(4, seed)
        np.testing.assert_allclose(loss_of(*case), reference(*case, 0.3), rtol=1e-5)
    weights, links, target_ids = random_case(4, 0)
    assert loss_of(weights, 0 * links, target_ids) == 0.0
    assert loss_of(weights, links, 0 * target_ids) > 0.0  # not NaN
    weights[:, :, 0] = 0.0
    assert np.isfinite(loss_of(weights, links, target_ids))


def test_the_loss_of_a_batch_is_that_of_its_parts():
    case = random_case(6, 1)
    parts = [[array[rows] for array in case] for rows in ([0, 1], [2, 3, 4, 5])]
    counts = [(part[2] != 0).sum() for part in parts]
    mean = np.dot(counts, [loss_of(*part) for part in parts]) / sum(counts)
    np.testing.assert_allclose(loss_of(*case), mean, rtol=1e-5)


@pytest.mark.slow
def test_attention_follows_its_links(tmp_path):
    settings = {"steps": 200, "learning_rate": 1e-2, "epsilon": 1e-9, "layers": 2}
    without = alignment_error(trained(tmp_path / "without", **settings))
    model = trained(tmp_path / "with", alignment_weight=1.0, **settings)
    assert model.guidance is None
    assert alignment_error(model) < 0.1 < 0.4 < without, (
        alignment_error(model),
        without,
    )


@pytest.mark.slow
def test_a_run_with_averages_and_dropout_is_resumed_exactly(tmp_path):
    options = {"dropout": 0.2, "alignment_weight": 0.3, "accumulate": 2, "ema": 0.9}
    whole = trained(tmp_path / "whole", steps=5, **options)
    trained(tmp_path / "parts", steps=2, **options)
    parts = trained(tmp_path / "parts", steps=5, **options)
    assert same(variables(whole), variables(parts))
    with pytest.raises(ValueError, match=r"`alignment_weight` 0.2 instead of 0.3"):
        trained(tmp_path / "parts", **{**options, "alignment_weight": 0.2})


@pytest.mark.slow
def test_accumulated_batches_and_parts_make_the_update_of_the_large_one(
    tmp_path, monkeypatch
):
    def joined(step):
        def both(first, second):
            return tf.concat([first, second], axis=0)

        pairs = data(2 * step).batch(2)
        return pairs.map(
            lambda *x: keras.tree.map_structure(lambda y: both(y[0], y[1]), x)
        )

    options = {"steps": 2, "alignment_weight": 0.5}
    large = trained(tmp_path / "large", joined, **options)
    small = trained(tmp_path / "small", accumulate=2, **options)
    monkeypatch.setattr(backend, "parallel_parts", lambda model: 3)
    parts = trained(tmp_path / "parts", joined, **options)
    for one, *others in zip(large.weights, small.weights, parts.weights, strict=True):
        for other in others:
            np.testing.assert_allclose(one.numpy(), other.numpy(), atol=2e-6)


def test_the_default_is_the_last_layer_but_one():
    config = toy_config(alignment_weight=0.1)
    layers = [guidance_of(make(layers=count), config).layer for count in (1, 2, 3)]
    assert layers == [1, 1, 2]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ToyModel, "are learned, such as DotProductAttention"),
        (fixed, "Received: a model without"),
    ],
)
def test_models_that_cannot_be_guided_are_refused(model, message):
    config = toy_config(alignment_weight=0.1)
    with pytest.raises(ValueError, match=message), guided(model(), config):
        pass


def test_batches_without_alignments_are_refused(tmp_path):
    def without(step):
        return data(step).map(
            lambda x, *rest: (
                {k: v for k, v in x.items() if k != "alignments"},
                *rest,
            )
        )

    with pytest.raises(ValueError, match="batches with alignments"):
        trained(tmp_path, without, alignment_weight=0.1)
