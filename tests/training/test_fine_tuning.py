"""Runs that begin with a trained model: what they take, train, save and refuse."""

import re
import shutil

import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import FineTuning
from keras_attnvariants.training import fine_tuning
from keras_attnvariants.training.state import to_arrays
from tests.tuning.toy import toy_preset

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.fixture(scope="module")
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.fixture(scope="module")
def preset():
    return toy_preset(hidden_dim=16, intermediate_dim=32)


@pytest.fixture(scope="module")
def run(corpus, preset, tmp_path_factory):
    """A run of a few updates."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    train(preset, corpus, folder, vocabulary_size=50)
    return folder


def train(preset, corpus, folder, steps=4, **options):
    """Trains for a few updates, and returns the model as it was saved."""
    settings = {"steps": steps, "validate_every": 2, "learning_rate": 0.1}
    options = {"precision": "float32", "verbose": 0, **options}
    kav.training.train_preset(preset, corpus, folder, settings=settings, **options)
    return kav.training.load_run(folder).model


def values(model):
    """The weights by their path, without the name of the model."""
    return {
        weight.path.partition("/")[2]: ops.convert_to_numpy(weight)
        for weight in model.weights
    }


def changed(before, after):
    """The paths of the weights that differ in two models."""
    before, after = values(before), values(after)
    assert before.keys() == after.keys()
    return {path for path in before if not np.array_equal(before[path], after[path])}


@pytest.fixture
def trained(run):
    return trained_by(run)


def trained_by(run):
    return kav.training.load_run(run).model


def test_a_run_begins_with_the_weights_and_the_vocabulary(
    run, trained, preset, corpus, tmp_path, capsys
):
    options = {"fine_tuning": FineTuning(model=run)}
    model, tokens, config = kav.training.model_training.build_run(
        preset,
        corpus,
        tmp_path,
        None,
        {},
        {},
        {"precision": "float32", "data": {"batch_tokens": None, "seed": 2}},
        **options,
    )
    assert changed(trained, model) == set()
    assert tokens.tokenizer.sha256 == kav.training.load_run(run).tokenizer.sha256
    assert "all" in capsys.readouterr().out
    assert re.fullmatch("[0-9a-f]{64}", config.data["from_model"])


def test_frozen_parts_stay(run, trained, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, freeze=("encoder", "embeddings"))
    found = changed(trained, train(preset, corpus, tmp_path, fine_tuning=tuning))
    assert found
    assert all(path.startswith("decoder") for path in found)


def test_lora_trains_its_matrices_alone_and_saves_sums(
    run, trained, preset, corpus, tmp_path
):
    tuning = FineTuning(model=run, lora_rank=2, lora_layers=("query", "value"))
    saved = train(preset, corpus, tmp_path, fine_tuning=tuning)
    found = changed(trained, saved)
    assert {path.split("/")[-2] for path in found} == {"query", "value"}
    for path in found:
        difference = values(saved)[path] - values(trained)[path]
        assert np.linalg.matrix_rank(difference, tol=1e-5) <= 2


def outputs(model):
    ids = np.array([[5, 6, 7, 3]])
    return ops.convert_to_numpy(model({"source_ids": ids, "target_ids": ids}))


def test_an_adapter_stands_for_the_model_that_was_saved(run, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, lora_rank=2)
    saved = train(preset, corpus, tmp_path / "lora", fine_tuning=tuning)
    adapter = tmp_path / "lora" / "adapter"
    found, tokenizer = kav.load_model(adapter)
    assert changed(trained_by(run), found)
    np.testing.assert_allclose(outputs(found), outputs(saved), atol=1e-5)
    assert tokenizer.sha256 == kav.training.load_run(run).tokenizer.sha256
    assert fine_tuning.preset_of(adapter) == preset.name


@pytest.mark.slow
def test_two_adapters_are_one(run, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, lora_rank=1, lora_layers=("query",))
    train(preset, corpus, tmp_path / "a", fine_tuning=tuning)
    first = tmp_path / "a" / "adapter"
    tuning = FineTuning(model=first, lora_rank=2, lora_layers=("query", "value"))
    saved = train(preset, corpus, tmp_path / "b", fine_tuning=tuning)
    found = kav.load_model(tmp_path / "b" / "adapter").model
    np.testing.assert_allclose(outputs(found), outputs(saved), atol=1e-5)
    shutil.rmtree(first)
    kav.load_model(tmp_path / "b" / "adapter")


@pytest.mark.slow
def test_sums_are_not_rounded_in_mixed_precision(run, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, lora_rank=2, lora_layers=("query",))
    options = {"fine_tuning": tuning, "precision": "mixed_bfloat16"}
    saved = train(preset, corpus, tmp_path, **options)
    before = values(trained_by(run))
    for path in changed(trained_by(run), saved):
        difference = values(saved)[path] - before[path]
        assert np.linalg.matrix_rank(difference, tol=1e-5) <= 2


def test_saved_sums_compute_what_the_products_do(trained, preset, tmp_path):
    fine_tuning.add_lora(trained, 2)
    for weight in trained.trainable_variables:
        weight.assign(np.random.default_rng(1).normal(size=weight.shape) / 8)
    ids = np.array([[5, 6, 7, 3]])
    inputs = {"source_ids": ids, "target_ids": ids}
    saved, _ = kav.load_model(kav.save_model(trained, tmp_path / "saved"))
    np.testing.assert_allclose(saved(inputs), trained(inputs), atol=1e-5)
    assert len(saved.weights) < len(trained.weights)


def test_lora_trains_few_weights_of_a_model_of_the_package():
    model = kav.load_model("kav/base/tatoeba-en-de").model
    whole = model.count_params()
    fine_tuning.add_lora(model, 4)
    count = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
    assert 0 < count < 0.05 * whole


def test_a_resumed_run_ends_like_an_undisturbed_one(run, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, lora_rank=2, freeze=("decoder_norm",))
    options = {"fine_tuning": tuning}
    train(preset, corpus, tmp_path / "a", steps=2, **options)
    resumed = train(preset, corpus, tmp_path / "a", **options)
    undisturbed = train(preset, corpus, tmp_path / "b", **options)
    for one, other in zip(
        to_arrays(resumed.weights), to_arrays(undisturbed.weights), strict=True
    ):
        np.testing.assert_array_equal(one, other)


DYING = """
import os, signal
import keras

class Dies(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 2:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_run_ends_like_an_undisturbed_one(forks, run, corpus_folder, tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    options = ["--preset", "kav/base/bible", "--steps", "5", "--save-every", "1"]
    options += ["--source", "xx", "--target", "yy", "--data", str(corpus_folder)]
    options += ["--precision", "float32", "--lora", "2", "--samples", "0"]

    def end_of(name, *more):
        call = ["train", "--from", run, "--run", name, *options, *more]
        process = forks.start("keras_attnvariants", *call, cwd=tmp_path)
        return process.wait(), process.communicate()

    assert end_of("killed", "--callback", "dying:Dies")[0] == -9
    states = [path.name for path in (tmp_path / "killed" / "state").iterdir()]
    assert states
    for name in ("killed", "undisturbed"):
        status, output = end_of(name)
        assert status == 0, output
    one, other = (
        kav.training.load_run(tmp_path / name).model.get_weights()
        for name in ("killed", "undisturbed")
    )
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_other_attention_leaves_no_adapter(run, corpus, tmp_path, capsys):
    preset = toy_preset("kav/hc-sa/bible", hidden_dim=16, intermediate_dim=32)
    tuning = FineTuning(model=run, lora_rank=2)
    train(preset, corpus, tmp_path, fine_tuning=tuning)
    assert "No adapter" in capsys.readouterr().out
    assert not (tmp_path / "adapter").exists()


def test_it_is_resumed_with_the_same_model_alone(run, preset, corpus, tmp_path):
    tuning = FineTuning(model=run, lora_rank=2)
    train(preset, corpus, tmp_path, steps=2, fine_tuning=tuning)
    other = FineTuning(model=run, lora_rank=4)
    with pytest.raises(kav.training.DifferentSettingsError, match="`lora` 4 instead"):
        train(preset, corpus, tmp_path, fine_tuning=other)
    with pytest.raises(kav.training.DifferentSettingsError, match="`from_model`"):
        train(preset, corpus, tmp_path)


def test_another_attention_takes_what_fits(run, corpus, tmp_path, capsys):
    preset = toy_preset("kav/hc-sa/bible", hidden_dim=16, intermediate_dim=32)
    train(preset, corpus, tmp_path, fine_tuning=FineTuning(model=run))
    assert "left" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lora_rank": 0}, "`lora_rank`"),
        ({"lora_layers": ("query",)}, "needs `lora_rank`"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        FineTuning(model="m", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"freeze": ("nose",)}, "must be a part.*embeddings, encoder_0"),
        ({"freeze": ("embeddings", "encoder", "decoder")}, "must leave weights"),
        ({"lora_rank": 2, "lora_layers": ("nose",)}, "must be names of dense.*query"),
        ({"lora_rank": 16}, "must be below 16"),
    ],
)
def test_parts_that_are_not_there(run, trained, options, message):
    with pytest.raises(ValueError, match=message):
        FineTuning(model=run, **options).start(trained)


def test_a_vocabulary_belongs_to_its_model(run, preset, corpus, tmp_path):
    tuning, tokenizer = FineTuning(model=run), kav.training.load_run(run).tokenizer
    with pytest.raises(ValueError, match="`tokenizer` must not"):
        train(preset, corpus, tmp_path, fine_tuning=tuning, tokenizer=tokenizer)
    with pytest.raises(ValueError, match="`vocabulary_size`"):
        train(preset, corpus, tmp_path, tokenizer=tokenizer, vocabulary_size=60)


def test_the_preset_of_a_model(run, preset, tmp_path):
    assert fine_tuning.preset_of(run) == preset.name
    name = "kav/hc-sa/tatoeba-en-de"
    assert fine_tuning.preset_of(name) == name
    assert fine_tuning.preset_of(run / "best") == ""
    shutil.copy(run / "log.jsonl", tmp_path)
    assert fine_tuning.preset_of(tmp_path) == ""  # its settings are gone


def test_the_number_of_heads_is_that_of_the_model(corpus, preset, tmp_path):
    train(preset, corpus, tmp_path, steps=2, sizes={"num_heads": 4})
    for name in ("kav/base/bible", "kav/hc-sa/bible"):
        other = toy_preset(name, hidden_dim=16, intermediate_dim=32, num_heads=2)
        assert FineTuning(model=tmp_path).sizes(other) == {"num_heads": 4}


def test_a_preset_of_another_kind_of_model(run):
    preset = kav.presets.get("kav/lstm/tatoeba-en-de")
    with pytest.raises(ValueError, match="Transformer.*a Seq2SeqLSTM"):
        FineTuning(model=run).sizes(preset)
