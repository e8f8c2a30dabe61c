"""How a run gets its tokenizer, its precision and its settings."""

import json

import pytest

from keras_attnvariants import presets
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import TrainingConfig


@pytest.fixture
def corpus(corpus_folder, tmp_path):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=tmp_path)


def test_a_run_keeps_its_tokenizer(recipe, corpus, tmp_path):
    runs = recipe("runs")
    first = runs.tokenizer_of(tmp_path, corpus, 40)
    assert first.vocabulary_size == 40
    other = Tokenizer.train(corpus.files("test"), 40)
    other.save(tmp_path / "tokenizer.model")
    assert runs.tokenizer_of(tmp_path, corpus, 40).sha256 == other.sha256
    assert first.sha256 != other.sha256
    with pytest.raises(ValueError, match="vocabulary of 40.*Received: 60"):
        runs.tokenizer_of(tmp_path, corpus, 60)


def test_a_run_keeps_its_precision(recipe, tmp_path):
    runs = recipe("runs")
    assert runs.precision_of(tmp_path) in ("float32", "mixed_bfloat16")
    config = {"training": {"precision": "mixed_float16"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert runs.precision_of(tmp_path) == "mixed_float16"


@pytest.mark.parametrize(
    ("bfloat16", "precision"), [(0.5, "mixed_bfloat16"), (0.9, "float32")]
)
def test_precision_is_the_faster_one(
    bfloat16, precision, recipe, tmp_path, monkeypatch
):
    runs = recipe("runs")
    seconds = {"bfloat16": bfloat16, "float32": 1.0}
    monkeypatch.setattr(runs, "product_seconds", lambda *dtypes: seconds)
    assert runs.precision_of(tmp_path) == precision


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_can_be_trained(name, recipe):
    preset = presets.get(name)
    config = TrainingConfig(**recipe("runs").preset_settings(preset))
    assert config.steps == preset.training.steps
    assert config.average_last == preset.training.averaged_checkpoints
    assert TrainingConfig.from_json(config.to_json()).to_json() == config.to_json()
