"""How a run gets its tokenizer, precision and settings, and which model is loaded."""

import json
import shutil

import numpy as np
import pytest

from keras_attnvariants import presets
from keras_attnvariants import training
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import runs
from keras_attnvariants.training.settings import DifferentSettingsError
from keras_attnvariants.utils.files import DamagedFolderError

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


def lines(text):
    """The token ids of each line of a tokenized text."""
    return np.split(text.ids, text.offsets[1:-1])


def test_pairs_and_epochs_of_a_preset_are_those_of_the_corpus(
    corpus, tmp_path, monkeypatch
):
    started = {}
    monkeypatch.setattr(
        runs, "train_in", lambda *given: started.update(training=given[-1])
    )
    preset = presets.get("cs287/seq2seq/iwslt16-de-en")
    options = {"vocabulary_size": 50, "precision": "float32"}
    small = {"embedding_dim": 4, "hidden_dim": 4}

    def run(**settings):
        training.train_preset(
            preset, corpus, tmp_path, sizes=small, settings=settings, **options
        )
        given = started["training"]
        return given.model, TokenizedCorpus(corpus, given.tokenizer), given.config

    model, tokens, config = run()
    batch = config.data["batch_tokens"]
    lengths = [len(ids) for text in tokens.split("train") for ids in lines(text)]
    pairs = len(lengths) // 2
    assert batch == round(32 * (sum(lengths) + pairs) / pairs)
    assert config.steps == 10 * tokens.num_batches(batch)
    assert model.search_settings.beam_size == 3
    assert run(steps=7)[-1].steps == 7


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
    for name in ("bleu_sentences", "samples"):
        with pytest.raises(ValueError, match=f"`{name}` must be an integer >= 0"):
            training.train_preset(
                preset, corpus, tmp_path, precision="float32", **{name: -1}
            )
    with pytest.raises(ValueError, match="`batch_tokens` must be"):
        training.train_preset(
            preset, corpus, tmp_path, batch_tokens=-1, precision="float32"
        )


def test_a_run_keeps_its_tokenizer(corpus, tmp_path):
    first = runs.run_tokenizer(tmp_path, {}, corpus, 40, {})
    assert first.vocabulary_size == 40
    other = Tokenizer.train(corpus.files("test"), 40)
    other.save(tmp_path / "tokenizer.model")
    assert runs.run_tokenizer(tmp_path, {}, corpus, 40, {}).sha256 == other.sha256
    assert first.sha256 != other.sha256
    with pytest.raises(DifferentSettingsError, match="`vocabulary_size` 60 instead"):
        runs.run_tokenizer(tmp_path, {}, corpus, 60, {})


def test_a_changed_tokenizer_is_noticed(corpus, tmp_path):
    tokenizer = runs.run_tokenizer(tmp_path, {}, corpus, 40, {})
    saved = {"tokenizer": tokenizer.sha256}
    path = tmp_path / "tokenizer.model"
    tokenizer.save(path)
    again = runs.run_tokenizer(tmp_path, saved, corpus, 40, {})
    assert again.sha256 == tokenizer.sha256
    content = bytearray(tokenizer.model_bytes)
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFolderError, match=f"{path} is not .* restore it"):
        runs.run_tokenizer(tmp_path, saved, corpus, 40, {})


def test_a_run_learns_the_subwords_asked_for(corpus, tmp_path):
    bpe = runs.run_tokenizer(tmp_path, {}, corpus, 40, {"model_type": "bpe"})
    assert bpe.sha256 == Tokenizer.train(corpus.files("train"), 40, "bpe").sha256
    assert bpe.sha256 != runs.run_tokenizer(tmp_path, {}, corpus, 40, {}).sha256


def test_a_run_keeps_its_precision(monkeypatch):
    monkeypatch.setattr(runs, "faster_precision", lambda: "measured")
    assert runs.run_precision({}) == "measured"
    saved = {"training": {"precision": "mixed_float16"}}
    assert runs.run_precision(saved) == "mixed_float16"


def test_data_are_compared_by_the_sentences_that_matter(corpus_folder, tmp_path):
    """Neither the names of files nor test sets make another run of it."""
    preset = presets.get("kav/hc-sa/bible")

    def described(folder, **subwords):
        loaded = load_corpus(folder, "xx", "yy", cache_dir=tmp_path / "cache")
        return runs.describe_data(preset, loaded, subwords)

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
        ([("period", "val_loss", 3.0), ("averaged", "val_loss", None)], "best"),
        ([("averaged", "val_loss", None)], "best"),
        # BLEU for information alone, which the average does not have.
        ([("period", "val_bleu", 9.0), ("averaged", "val_loss", 3.0)], "averaged"),
    ],
)
def test_the_better_model_of_a_run(events, better, tmp_path):
    lines = [
        json.dumps({"event": event, "step": 1, name: x}) + "\n"
        for event, name, x in events
    ]
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
