"""How a run gets its tokenizer, precision and settings, and which model is loaded."""

import json

import pytest

from keras_attnvariants import presets
from keras_attnvariants import training
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import runs

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.fixture
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.mark.slow
def test_a_preset_is_trained_and_loaded(corpus, tmp_path):
    sizes = {"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 16, "num_heads": 2}
    result = training.train_preset(
        presets.get("kav/hc-all/bible"),
        corpus,
        tmp_path / "run",
        vocabulary_size=50,
        batch_tokens=512,
        sizes=sizes,
        settings={"steps": 4, "validate_every": 4},
        precision="float32",
        bleu_sentences=2,
        verbose=0,
    )
    assert result.step == 4 and result.monitor == "val_bleu"
    settings = json.loads((tmp_path / "run/config.json").read_text())["training"]
    assert settings["data"]["batch_tokens"] == 512
    assert settings["label_smoothing"] == 0.1  # the preset's
    model, tokenizer = training.load_run(tmp_path / "run")
    assert model.vocabulary_size == tokenizer.vocabulary_size == 50
    # The ratio of the corpus, whose sides are equally long.
    assert '"length_ratio": 1.0' in json.dumps(model.get_config())


def test_settings_are_checked_before_a_vocabulary_is_learned(
    corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(Tokenizer, "train", lambda *_: pytest.fail("learned"))
    preset = presets.get("kav/hc-sa/bible")
    with pytest.raises(ValueError, match="`steps` must be a positive integer"):
        training.train_preset(
            preset, corpus, tmp_path, settings={"steps": 0}, precision="float32"
        )
    for sizes in ({"num_heads": 3}, {"hidden": 8}):
        with pytest.raises(ValueError, match="num_heads=3|hidden"):
            training.train_preset(
                preset, corpus, tmp_path, sizes=sizes, precision="float32"
            )
    with pytest.raises(ValueError, match="`vocabulary_size` must be"):
        training.train_preset(
            preset, corpus, tmp_path, vocabulary_size=0, precision="float32"
        )
    with pytest.raises(ValueError, match="`batch_tokens` must be"):
        training.train_preset(
            preset, corpus, tmp_path, batch_tokens=-1, precision="float32"
        )


def test_a_run_keeps_its_tokenizer(corpus, tmp_path):
    first = runs.run_tokenizer(tmp_path, corpus, 40)
    assert first.vocabulary_size == 40
    other = Tokenizer.train(corpus.files("test"), 40)
    other.save(tmp_path / "tokenizer.model")
    assert runs.run_tokenizer(tmp_path, corpus, 40).sha256 == other.sha256
    assert first.sha256 != other.sha256
    with pytest.raises(ValueError, match="that of the run.*, 40;.*Received: 60"):
        runs.run_tokenizer(tmp_path, corpus, 60)


def test_a_run_keeps_its_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "faster_precision", lambda: "measured")
    assert runs.run_precision(tmp_path) == "measured"
    config = {"training": {"precision": "mixed_float16"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert runs.run_precision(tmp_path) == "mixed_float16"


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_can_be_trained(name):
    preset = presets.get(name)
    config = TrainingConfig(**runs.preset_settings(preset))
    assert config.steps == preset.training.steps
    assert config.average_last == preset.training.averaged_checkpoints
    assert TrainingConfig.from_dict(config.to_dict()).to_dict() == config.to_dict()


@pytest.mark.parametrize(
    ("events", "better"),
    [
        ([("period", "val_loss", 3.0)], "best"),  # ended before its average
        ([("period", "val_loss", 3.0), ("averaged", "val_loss", 3.2)], "best"),
        ([("period", "val_loss", 3.0), ("averaged", "val_loss", 2.9)], "averaged"),
        ([("period", "val_bleu", 20.0), ("averaged", "val_bleu", 19.0)], "best"),
        ([("period", "val_bleu", 20.0), ("averaged", "val_bleu", 21.0)], "averaged"),
        ([("averaged", "val_loss", 3.0), ("period", "val_loss", 2.5)], "best"),
        ([("period", "loss", 3.0), ("averaged", "step", 7)], "averaged"),
        ([("period", "val_loss", None), ("averaged", "val_loss", 3.0)], "averaged"),
    ],
)
def test_the_better_model_of_a_run(events, better, tmp_path):
    lines = [json.dumps({"event": event, name: x}) + "\n" for event, name, x in events]
    (tmp_path / "log.jsonl").write_text("".join(lines))
    assert runs.better_model(tmp_path / "log.jsonl") == better
    # A process that was killed may leave half a line.
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "per')
    assert runs.better_model(tmp_path / "log.jsonl") == better


def test_the_better_model_is_loaded(run_folder, tmp_path):
    model, tokenizer = training.load_run(str(run_folder))
    assert model.name == "averaged"
    assert tokenizer.vocabulary_size == 50
    with pytest.raises(FileNotFoundError, match="`run_dir` must be.*Received: "):
        training.load_run(tmp_path)
