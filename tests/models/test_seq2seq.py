"""The recurrent model: against the equations, masks, configuration, sizes."""

import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.models import Seq2SeqLSTM
from tests.models import naive_lstm
from tests.models import tiny
from tests.models.stepping import BEAMS
from tests.models.tiny_lstm import EACH_FLAVOUR
from tests.models.tiny_lstm import EACH_MASKED
from tests.models.tiny_lstm import arrays
from tests.models.tiny_lstm import built
from tests.models.tiny_lstm import make

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@tiny.EACH_BATCH
@EACH_FLAVOUR
def test_logits_are_those_of_the_equations(flavour, batch):
    model, batch = built(flavour), tiny.BATCHES[batch]
    expected, _ = naive_lstm.logits_and_weights(
        arrays(model), model.get_config(), *batch.values()
    )
    tiny.near(tiny.forward(model, batch), expected)


@EACH_FLAVOUR
def test_attention_scores_are_those_of_the_equations(flavour):
    model, batch = built(flavour), tiny.inputs()
    tensors = keras.tree.map_structure(ops.convert_to_tensor, batch)
    found = model.attention_scores(tensors)
    if not model.decoder.attention:
        assert found == {"decoder": {}}
        return
    _, expected = naive_lstm.logits_and_weights(
        arrays(model), model.get_config(), *batch.values()
    )
    # Uniform attention would prove little.
    assert expected[0].max() > 1.4 / tiny.SOURCE_LENGTH
    weights = tiny.to_numpy(found["decoder"]["cross"])
    assert weights.dtype == "float32"
    real = (batch["target_ids"] != 0)[..., None]
    for [found], alphas, rows in zip(weights, expected, real, strict=True):
        length = alphas.shape[1]
        tiny.near(found[:, :length], np.where(rows, alphas, 0))
        assert not found[:, length:].any()


def test_attention_scores_in_training_are_weights_of_dropped_embeddings():
    model, batch = make(dropout=0.5), tiny.inputs()
    model.set_weights(built("attention").get_weights())
    tensors = keras.tree.map_structure(ops.convert_to_tensor, batch)
    exact, dropped = (
        tiny.to_numpy(model.attention_scores(tensors, training)["decoder"]["cross"])
        for training in (False, True)
    )
    assert np.abs(dropped - exact).max() > 1e-2
    real = (batch["target_ids"] != 0).astype("float32")
    tiny.near(dropped.sum(-1)[:, 0], real)


@EACH_MASKED
def test_a_sentence_depends_neither_on_padding_nor_on_its_neighbours(flavour):
    model, batch = built(flavour), tiny.inputs()
    together = tiny.forward(model)
    wider = np.pad(batch["source_ids"], ((0, 0), (0, 4)))
    tiny.near(tiny.forward(model, {**batch, "source_ids": wider}), together)
    reversed_batch = {name: ids[::-1].copy() for name, ids in batch.items()}
    tiny.near(tiny.forward(model, reversed_batch)[::-1], together)


def test_padding_counts_if_it_is_not_masked():
    model, batch = built("attention, padding as tokens"), tiny.inputs()
    wider = np.pad(batch["source_ids"], ((0, 0), (0, 4)))
    change = tiny.forward(model, {**batch, "source_ids": wider}) - tiny.forward(model)
    assert np.abs(change).max() > 1e-2


@EACH_FLAVOUR
def test_a_position_sees_no_later_target_token(flavour):
    batch, model = tiny.inputs(), built(flavour)
    before = tiny.forward(model)
    target = batch["target_ids"].copy()
    target[:, 5:] = (target[:, 5:] + 7) % tiny.VOCABULARY
    after = tiny.forward(model, {**batch, "target_ids": target})
    tiny.near(after[:, :5], before[:, :5])
    assert np.abs(after[:, 5:] - before[:, 5:]).max() > 1e-2


@EACH_FLAVOUR
def test_config_survives_json(flavour):
    model = built(flavour)
    config = json.loads(json.dumps(model.get_config()))
    again = Seq2SeqLSTM.from_config(config)
    assert again.get_config() == model.get_config()
    again.set_weights(model.get_weights())
    tiny.near(tiny.forward(again), tiny.forward(model), 1e-6)


def test_a_keras_file_reloads_in_safe_mode(tmp_path):
    model = built("attention, one direction")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is Seq2SeqLSTM
    tiny.near(tiny.forward(loaded), tiny.forward(model), 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_saved_model_comes_back(dtype, tmp_path):
    model = built("attention", dtype)
    loaded = load_model(save_model(model, tmp_path / "model")).model
    assert type(loaded) is Seq2SeqLSTM
    assert loaded.dtype_policy.name == dtype
    tiny.near(tiny.forward(loaded), tiny.forward(model), 0)


def test_every_weight_has_a_name_of_its_own():
    paths = [weight.path for weight in make().weights]
    assert len(set(paths)) == len(paths) == 13


def test_a_symbolic_call_has_the_shape_and_dtype_of_the_logits():
    ids = {
        name: keras.Input((None,), dtype="int32")
        for name in ("source_ids", "target_ids")
    }
    logits = make(dtype="mixed_bfloat16", source_vocabulary_size=99)(ids)
    assert logits.shape == (None, None, tiny.VOCABULARY)
    assert logits.dtype == "bfloat16"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"attention": False, "bidirectional": False, "hidden_dim": 100}, 3_819_660),
        ({}, 5_376_460),
        ({"hidden_dim": 100}, 3_839_660),
    ],
)
def test_parameters_with_the_vocabularies_of_the_paper(options, count):
    model = Seq2SeqLSTM(11_560, source_vocabulary_size=13_353, **options)
    assert model.count_params() == count


@pytest.mark.parametrize("name", ["source_ids", "target_ids"])
def test_a_sequence_beyond_max_length_is_refused(name):
    model = built("attention")
    ids = np.full((1, tiny.MAX_LENGTH), 5, "int32")
    both = {"source_ids": ids, "target_ids": ids}
    assert tiny.forward(model, both).shape[1] == tiny.MAX_LENGTH
    with pytest.raises(ValueError, match=rf"{name}(.|\n)*72(.|\n)*Received: 73"):
        tiny.forward(model, {**both, name: np.pad(ids, ((0, 0), (0, 1)))})
    context = model.encode(ops.convert_to_tensor(ids))
    with pytest.raises(ValueError, match="max_length.*72.*Received: 73"):
        model.initial_state(context, BEAMS, tiny.MAX_LENGTH + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_dim": 7}, "`hidden_dim`.*even.*Received: 7"),
        ({"hidden_dim": 0}, "hidden_dim.*positive.*Received: 0"),
        ({"hidden_dim": 8.0}, "hidden_dim.*Received: 8.0"),
        ({"embedding_dim": -1}, "embedding_dim.*Received: -1"),
        ({"vocabulary_size": 3}, "eos_id.*3 tokens.*Received: 3"),
        ({"source_vocabulary_size": 0}, "source_vocabulary_size.*Received: 0"),
        ({"source_vocabulary_size": 9, "pad_id": 9}, "pad_id.*9 tokens.*Received: 9"),
        ({"max_length": 0}, "max_length.*Received: 0"),
        ({"dropout": 1.5}, "dropout.*1.5"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_an_odd_width_will_do_in_one_direction():
    assert make(hidden_dim=7, bidirectional=False).hidden_dim == 7
