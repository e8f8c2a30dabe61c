"""Searches inside a SavedModel, with any number of sentences. TensorFlow only."""

import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import score
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import random_sources
from tests.decoding.toys import search

if backend.name() != "tensorflow":
    pytest.skip("SavedModels belong to TensorFlow", allow_module_level=True)

import tensorflow as tf  # noqa: E402

MODEL = RecurrentModel(max_length=20)
# All shapes are dynamic; only the number of target positions is fixed.
IDS = tf.TensorSpec([None, None], tf.int32)
EVERYTHING = {"return_alignments": True, "return_token_log_probs": True}


class Exported(tf.Module):
    """A search as a server would run it."""

    @tf.function(input_signature=[IDS, IDS], autograph=False)
    def beam(self, source_ids, prefix):
        found = beam_search(MODEL, source_ids, n_best=2, prefix=prefix, **EVERYTHING)
        return found._asdict()

    @tf.function(input_signature=[IDS], autograph=False)
    def greedy(self, source_ids):
        found = greedy_search(MODEL, source_ids, **EVERYTHING)
        return found._asdict()


@pytest.fixture(scope="module")
def restored(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("saved_model"))
    tf.saved_model.save(Exported(), path)
    return tf.saved_model.load(path)


@pytest.mark.parametrize("batch", [0, 1, 5])
@pytest.mark.parametrize("width", [3, 7])
def test_restored_beam_search_is_the_same(restored, batch, width):
    sources = random_sources(5, width=width)[:batch]
    prefix = np.array([[4, 5], [6, PAD], [PAD, PAD], [7, PAD], [5, 8]], "int32")
    prefix = prefix[:batch]
    found = restored.beam(tf.constant(sources), tf.constant(prefix))
    assert found["ids"].shape == (batch, 2, 20)
    assert found["alignments"].shape == (batch, 2, 20, width)
    if batch:
        here = search(MODEL, sources, n_best=2, prefix=prefix, **EVERYTHING)
        for name, value in here._asdict().items():
            np.testing.assert_allclose(found[name].numpy(), value, atol=1e-4)


def test_restored_beam_search_takes_an_empty_prefix(restored):
    sources = random_sources(4)
    found = restored.beam(tf.constant(sources), tf.zeros((4, 0), tf.int32))
    np.testing.assert_array_equal(
        found["ids"].numpy(), search(MODEL, sources, n_best=2).ids
    )


def test_prefix_that_turns_out_too_long_is_cut_off_by_eos(restored):
    sources = tf.constant(random_sources(1))
    found = restored.beam(sources, tf.fill((1, 30), 5))
    assert found["ids"].numpy()[0, 0].tolist() == [5] * 19 + [EOS]


@pytest.mark.parametrize("batch", [0, 4])
def test_restored_greedy_search_is_the_same(restored, batch):
    sources = random_sources(4)[:batch]
    found = restored.greedy(tf.constant(sources))
    assert found["ids"].shape == (batch, 1, 20)
    if batch:
        here = search(MODEL, sources, greedy_search, **EVERYTHING)
        for name, value in here._asdict().items():
            np.testing.assert_allclose(found[name].numpy(), value, atol=1e-4)


def test_graph_holds_no_operation_of_xla(restored):
    names = {"beam", "greedy"}
    operations = set()
    for name in names:
        graph = getattr(restored, name).concrete_functions[0].graph.as_graph_def()
        operations |= {node.op for node in graph.node}
        for function in graph.library.function:
            operations |= {node.op for node in function.node_def}
    assert "While" in operations or "StatelessWhile" in operations
    assert not [name for name in operations if name.startswith("Xla")]


def test_scoring_takes_any_batch():
    module = tf.Module()
    spec = [tf.TensorSpec([None, 5], tf.int32), tf.TensorSpec([None, 4], tf.int32)]
    module.score = tf.function(lambda s, t: score(MODEL, s, t), input_signature=spec)
    sources = random_sources(3, width=5)
    targets = random_sources(3, width=4, seed=2)
    log_probs, lengths = module.score(sources, targets)
    expected, _ = score(MODEL, sources, targets)
    np.testing.assert_allclose(log_probs.numpy(), expected.numpy(), atol=1e-4)
    assert lengths.numpy().tolist() == ((targets != PAD).sum(axis=1) + 1).tolist()
    log_probs, lengths = module.score(sources[:0], targets[:0])
    assert log_probs.shape == lengths.shape == (0,)
