"""A preset is trained on a corpus, with its paper's counts taken there."""

import json
from dataclasses import replace

import numpy as np
import pytest

from keras_attnvariants import presets
from keras_attnvariants import training
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.presets.preset import layer_config
from keras_attnvariants.training import model_training

SIZES = {"num_layers": 1, "hidden_dim": 8, "intermediate_dim": 8, "num_heads": 2}

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
        score_sentences=2,
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
    started = []
    monkeypatch.setattr(
        model_training, "train", lambda *given, **_: started.append(given)
    )
    preset = presets.get("cs287/seq2seq/iwslt16-de-en")
    options = {"vocabulary_size": 50, "precision": "float32"}
    small = {"embedding_dim": 4, "hidden_dim": 4}

    def run(**settings):
        training.train_preset(
            preset, corpus, tmp_path, sizes=small, settings=settings, **options
        )
        model, tokenizer, _, _, config = started.pop()
        least = config.batches_per_shape
        tokens = TokenizedCorpus(corpus, tokenizer, batches_per_shape=least)
        return model, tokens, config

    model, tokens, config = run()
    batch = config.data["batch_tokens"]
    lengths = [len(ids) for text in tokens.split("train") for ids in lines(text)]
    pairs = len(lengths) // 2
    assert batch == round(32 * (sum(lengths) + pairs) / pairs)
    assert config.steps == 10 * tokens.num_batches(batch)
    assert model.search_settings.beam_size == 3
    assert run(steps=7)[-1].steps == 7


@pytest.mark.parametrize("xla", [False, True])
def test_a_small_corpus_has_few_shapes_where_each_is_compiled(xla, corpus, tmp_path):
    data = {"batch_tokens": 512, "seed": 1}
    given = {"precision": "float32", "jit_compile": xla, "data": data}
    preset = presets.get("kav/base/bible")
    _, tokens, config = model_training.build_run(
        preset, corpus, tmp_path, 50, {}, SIZES, given
    )
    assert (len(tokens.plan("train", 512).shapes) == 4) is config.uses_xla


def test_layers_in_the_sizes_have_the_ratio_of_the_corpus(
    corpus, tmp_path, monkeypatch
):
    started = []
    monkeypatch.setattr(
        model_training, "train", lambda *given, **_: started.append(given)
    )
    monkeypatch.setattr(TokenizedCorpus, "length_ratio", lambda self: 1.5)
    layer = layer_config("HardCodedCrossAttention", num_heads=2)
    training.train_preset(
        presets.get("kav/base/bible"),
        corpus,
        tmp_path,
        vocabulary_size=50,
        sizes={**SIZES, "cross_attention": [layer]},
        precision="float32",
    )
    assert '"length_ratio": 1.5' in json.dumps(started[0][0].get_config())
    assert "length_ratio" not in layer["config"]


def test_a_corpus_without_validation(corpus, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(
        model_training, "train", lambda *given, **options: started.append(options)
    )
    without = replace(corpus, splits={"train": corpus.splits["train"]})
    training.train_preset(
        presets.get("kav/base/bible"),
        without,
        tmp_path,
        vocabulary_size=50,
        sizes=SIZES,
        precision="float32",
    )
    assert started == [{"validation_data": None, "callbacks": (), "verbose": "auto"}]


def test_long_pairs_are_left_out_and_counted(corpus, tmp_path, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(
        model_training, "train", lambda *given, **_: started.append(given)
    )
    for verbose in ("auto", 0):
        training.train_preset(
            presets.get("kav/base/bible"),
            corpus,
            tmp_path,
            vocabulary_size=50,
            sizes={**SIZES, "max_length": 16},
            precision="float32",
            verbose=verbose,
        )
    [line] = capsys.readouterr().out.splitlines()
    source, target = TokenizedCorpus(corpus, started[0][1]).split("train")
    # A target has its EOS besides its tokens.
    is_long = (source.lengths > 16) | (target.lengths + 1 > 16)
    assert 0 < is_long.sum() < len(is_long)
    assert line.startswith(f"Left out: {is_long.sum()} of {len(is_long)} pairs")


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
    for settings in ({"data": {}}, {"precision": "float32"}):
        with pytest.raises(TypeError, match="values for .* '(data|precision)'"):
            training.train_preset(preset, corpus, tmp_path, settings=settings)
    for name in ("score_sentences", "samples"):
        with pytest.raises(ValueError, match=f"`{name}` must be an integer >= 0"):
            training.train_preset(
                preset, corpus, tmp_path, precision="float32", **{name: -1}
            )
    with pytest.raises(ValueError, match="`batch_tokens` must be"):
        training.train_preset(
            preset, corpus, tmp_path, batch_tokens=-1, precision="float32"
        )
