"""Several models as one: averages, states, alignments, and conditions."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants.decoding import Ensemble
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import sample
from keras_attnvariants.decoding import score
from keras_attnvariants.models import SearchSettings
from tests.decoding.test_translator import Tokenizer
from tests.decoding.toys import COMPILERS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import TableModel
from tests.decoding.toys import greedy_search
from tests.decoding.toys import random_sources
from tests.decoding.toys import search
from tests.decoding.toys import table_sources
from tests.quantization import quantizing
from tests.selection import mostly_slow

SEARCHES = [beam_search, greedy_search, sample]


def log_softmax(tables):
    tables = tables.astype("float64")
    return tables - np.log(np.exp(tables).sum(-1, keepdims=True))


@pytest.fixture(scope="module")
def tables():
    random = np.random.default_rng(4)
    # Of unlike scales, so that the two averages differ.
    return [random.normal(scale=scale, size=(20, 6, 7, 7)) for scale in (1, 3, 2)]


@pytest.mark.parametrize("xla", mostly_slow(COMPILERS, COMPILERS[:1]))
@pytest.mark.parametrize("function", SEARCHES)
@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_an_ensemble_of_tables_is_a_table(tables, average, function, xla):
    log_probs = np.stack([log_softmax(table) for table in tables])
    if average == "probabilities":
        mean = np.log(np.exp(log_probs).mean(axis=0))
    else:
        mean = log_probs.mean(axis=0)
    ensemble = Ensemble([TableModel(table) for table in tables], average)
    sources = table_sources(ensemble.members[0])
    found = search(ensemble, sources, function, xla=xla)
    expected = search(TableModel(mean), sources, function, xla=xla)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)
    other = search(TableModel(tables[1]), sources, function, xla=xla)
    assert (found.ids != other.ids).any()


@pytest.mark.parametrize("beam_size", mostly_slow([1, 3], [1]))
def test_copies_of_a_model_translate_as_it_does(beam_size):
    model = RecurrentModel(seed=3, eos_bias=-1.0)
    options = {"beam_size": beam_size, "return_alignments": True}
    sources = random_sources(8)
    found = search(Ensemble([model, model]), sources, **options)
    expected = search(model, sources, **options)
    assert found.lengths.max() > 20  # the second stage too
    np.testing.assert_array_equal(found.ids, expected.ids)
    for name in ("scores", "log_probs", "alignments"):
        one, other = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_alignments_are_means():
    members = [RecurrentModel(seed=seed) for seed in (1, 2)]
    sources = random_sources(4)
    found = search(
        Ensemble(members), sources, beam_size=2, max_length=6, return_alignments=True
    )
    prefix = found.ids[:, 0, :-1]
    alone = [
        search(m, sources, greedy_search, prefix=prefix, max_length=6,
               return_alignments=True)
        for m in members
    ]  # fmt: skip
    is_token = found.ids[:, 0] != PAD
    mean = (alone[0].alignments + alone[1].alignments)[:, 0][is_token] / 2
    np.testing.assert_allclose(found.alignments[:, 0][is_token], mean, atol=1e-4)


@pytest.fixture(scope="module")
def keras_members():
    keras.utils.set_random_seed(1)
    attention = kav.DotProductAttention(num_heads=2)
    sizes = {"vocabulary_size": 9, "max_length": 40}
    members = [
        kav.Transformer(
            num_layers=1, hidden_dim=8, intermediate_dim=8, encoder_attention=attention,
            decoder_attention=attention, cross_attention=attention, **sizes,
            search_settings={"beam_size": 2, "length_penalty": 1.0},
        ),
        kav.Seq2SeqLSTM(embedding_dim=8, hidden_dim=8, **{**sizes, "max_length": 50}),
    ]  # fmt: skip
    for model in members:
        for weight in model.weights:
            weight.assign(weight * 3)
    return members


@pytest.mark.slow
def test_models_of_keras_translate_together(keras_members):
    ensemble = Ensemble(keras_members)
    assert len(ensemble.weights) == sum(len(m.weights) for m in keras_members)
    assert ensemble.max_length == 40
    assert ensemble.search_settings == SearchSettings(2, 1.0)
    sources = random_sources(6)
    found = search(ensemble, sources, n_best=2, max_length=8, return_alignments=True)
    ids = found.ids[:, 0]
    log_probs, _ = score(ensemble, sources, np.where(ids == EOS, PAD, ids)[:, :-1])
    np.testing.assert_allclose(
        found.log_probs[:, 0], ops.convert_to_numpy(log_probs), atol=1e-4
    )
    texts = ["a b c", "d", "e a b"]
    options = {"min_length": 3, "max_length": 6, "block_unknown": True}
    translator = kav.Translator(
        ensemble, Tokenizer(), batch_sizes=(4,), source_lengths=(8,), **options
    )
    before = translator.translate(texts)
    assert len(before) == 3
    changed = keras_members[1].weights[-1]
    value = changed.value + 0
    changed.assign(changed * -10)
    assert translator.translate(texts) != before
    changed.assign(value)
    assert translator.translate(texts) == before


def test_an_ensemble_is_saved_with_its_members(keras_members, tmp_path):
    ensemble = Ensemble(keras_members, "log_probabilities", {"beam_size": 3})
    kav.save_model(ensemble, tmp_path / "model")
    loaded = kav.load_model(tmp_path / "model").model
    assert loaded.average == "log_probabilities"
    assert loaded.search_settings.beam_size == 3
    sources = random_sources(2)
    one, other = (
        search(model, sources, greedy_search, max_length=6)
        for model in (ensemble, loaded)
    )
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.log_probs, other.log_probs)


@pytest.mark.slow
def test_precision_is_that_of_the_members(keras_members):
    policy = {"dtype": "mixed_bfloat16"}
    half = Ensemble.from_config(Ensemble(keras_members).get_config() | policy)
    assert {m.compute_dtype for m in half.members} == {half.compute_dtype}
    assert half.compute_dtype == "bfloat16"
    mixed = Ensemble([keras_members[0], half.members[1]])
    assert mixed.compute_dtype == "bfloat16"
    with quantizing():
        half.quantize("int8")
    assert {m.quantization for m in half.members} == {half.quantization} == {"int8"}
    assert Ensemble(half.members).quantization == "int8"


def test_half_precision_is_averaged_in_float32():
    members = [RecurrentModel(seed=seed, dtype="bfloat16") for seed in (1, 2)]
    ensemble = Ensemble(members)
    inputs = {"source_ids": random_sources(2), "target_ids": np.array([[2, 4], [2, 5]])}
    logits = ensemble(inputs)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    sums = np.exp(ops.convert_to_numpy(logits)).sum(axis=-1)
    np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_who_does_not_fit_is_named():
    fitting = RecurrentModel()
    with pytest.raises(ValueError, match=r"at least one .* Received: \[\]"):
        Ensemble([])
    with pytest.raises(ValueError, match=r"`vocabulary_size`. Received: \[9, 11\]"):
        Ensemble([fitting, RecurrentModel(vocabulary_size=11)])
    other = RecurrentModel()
    other.eos_id = 1
    with pytest.raises(ValueError, match=r"`eos_id`. Received: \[3, 1\]"):
        Ensemble([fitting, other])
    with pytest.raises(ValueError, match="`average` .* Received: 'votes'"):
        Ensemble([fitting], "votes")
