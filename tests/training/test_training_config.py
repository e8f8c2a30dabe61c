"""Settings survive JSON; they come from presets, corpora and measured speed."""

import json
import shutil

import keras
import pytest
from keras.optimizers.schedules import PolynomialDecay

from keras_attnvariants import presets
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import faster_precision
from keras_attnvariants.training import training_config


@pytest.mark.parametrize("rate", [1e-3, NoamSchedule(8), PolynomialDecay(1e-3, 10)])
def test_round_trip_through_json(rate):
    config = TrainingConfig(10, rate, clipnorm=1.0, data={"languages": ["de", "en"]})
    values = config.to_dict()
    assert json.loads(json.dumps(values)) == values
    rate = keras.saving.deserialize_keras_object(values["learning_rate"])
    copy = TrainingConfig(**{**values, "learning_rate": rate})
    assert copy.to_dict() == values
    assert type(copy.learning_rate) is type(config.learning_rate)


def test_optimizer_has_the_settings():
    optimizer = TrainingConfig(10, 0.5, clipnorm=2.0).optimizer()
    config = optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"]) == (0.9, 0.98, 1e-9)
    assert config["global_clipnorm"] == 2.0
    assert float(optimizer.learning_rate) == 0.5


@pytest.mark.parametrize(
    "field", ["steps", "validate_every", "save_every", "average_last", "patience"]
)
def test_counts_must_be_positive(field):
    for value in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=rf"`{field}` must be a positive integer"):
            TrainingConfig(**{"steps": 1, "learning_rate": 1.0, field: value})


@pytest.mark.parametrize("field", ["clipnorm", "epsilon"])
@pytest.mark.parametrize("value", [0, -1.0, "1"])
def test_clipnorm_and_epsilon_must_be_positive(field, value):
    with pytest.raises(ValueError, match=rf"`{field}` must be a positive number"):
        TrainingConfig(1, 1.0, **{field: value})


@pytest.mark.parametrize("field", ["label_smoothing", "beta_1", "beta_2", "ema"])
@pytest.mark.parametrize("value", [-0.1, 1, "0.9"])
def test_rates_must_be_below_1(field, value):
    with pytest.raises(ValueError, match=rf"`{field}` must be at least 0 and below 1"):
        TrainingConfig(1, 1.0, **{field: value})


@pytest.mark.parametrize(
    ("backend", "jit_compile", "expected"),
    [("tensorflow", False, False), ("tensorflow", True, True), ("jax", False, True)],
)
def test_xla_is_used_on_request_and_on_jax(backend, jit_compile, expected, monkeypatch):
    monkeypatch.setattr(training_config.backend, "name", lambda: backend)
    assert TrainingConfig(1, 1.0, jit_compile=jit_compile).uses_xla is expected


@pytest.mark.parametrize(
    ("floats", "expected"), [("bfloat16", "mixed_bfloat16"), ("float32", "float32")]
)
def test_precision_is_the_faster_one(floats, expected, monkeypatch):
    monkeypatch.setattr(training_config, "faster_floats", lambda: floats)
    assert faster_precision() == expected


@pytest.fixture
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


def test_data_are_compared_by_the_sentences_that_matter(corpus_folder, tmp_path):
    """Neither names of files nor test sets make it another run."""
    preset = presets.get("kav/hc-sa/bible")

    def described(folder, **subwords):
        loaded = load_corpus(folder, "xx", "yy", cache_dir=tmp_path / "cache")
        return training_config.describe_data(preset, loaded, subwords)

    def copy(name):
        return shutil.copytree(corpus_folder, tmp_path / name)

    data = described(corpus_folder)
    assert data.keys() == {"preset", "train_sentences", "validation_sentences"}
    renamed = copy("renamed")
    (renamed / "test2.xx").write_text("aba\n")
    (renamed / "test2.yy").write_text("aba\n")
    assert described(renamed, model_type="unigram") == data
    changed = copy("changed")
    path = changed / "validation.xx"
    path.write_text("another" + path.read_text())
    different = described(changed, model_type="bpe")
    assert {k for k in different if different[k] != data.get(k)} == {
        "validation_sentences",
        "model_type",
    }


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_can_be_trained(name):
    preset = presets.get(name)
    config = TrainingConfig(**training_config.preset_settings(preset))
    assert config.steps == preset.training.steps
    assert config.average_last == preset.training.averaged_checkpoints
