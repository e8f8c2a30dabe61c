"""A run is resumed with its own settings; differences are reported with both values."""

import json

import keras
import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.model_folders import TOKENIZER
from keras_attnvariants.data.vocabularies import learn_vocabulary
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import run_settings
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.run_settings import check_same_run
from keras_attnvariants.training.run_settings import copy_vocabulary
from keras_attnvariants.training.run_settings import describe_model
from keras_attnvariants.training.run_settings import prepare_vocabulary
from keras_attnvariants.training.run_settings import read_settings
from keras_attnvariants.utils.files import DamagedFolderError
from tests.training.toy import toy_model


def settings(model=None, rate=1e-3, data=None, **training):
    config = TrainingConfig(10, rate, data=data or {}, **training)
    return {"training": config.to_dict(), "model": model or {"config": {}}}


def differences(saved, given, tmp_path):
    with pytest.raises(DifferentSettingsError) as caught:
        check_same_run(tmp_path, saved, given)
    return caught.value


def test_an_argument_of_many_layers_is_named_once(tmp_path):
    def model(heads):
        layer = {"class_name": "Attention", "config": {"num_heads": heads}}
        return {"config": {"encoder_attention": layer, "cross_attention": [layer] * 3}}

    error = differences(settings(model(4)), settings(model(3)), tmp_path)
    assert error.differences == (("num_heads", 4, 3),)
    assert error.message({"num_heads": "--heads"}).endswith(
        "Received: --heads 3 instead of 4"
    )


def test_schedules_differ_by_their_peak_and_their_warm_up(tmp_path):
    rates = [NoamSchedule.from_peak(1e-3, 100), NoamSchedule.from_peak(2e-3, 100)]
    error = differences(*(settings(rate=rate) for rate in rates), tmp_path)
    assert "Received: `learning_rate` 0.002 instead of 0.001" in str(error)
    error = differences(
        settings(rate=rates[0]),
        settings(rate=NoamSchedule.from_peak(1e-3, 9)),
        tmp_path,
    )
    assert error.differences == (("warmup_steps", 100, 9),)
    error = differences(settings(rate=0.1), settings(rate=rates[0]), tmp_path)
    assert str(error).endswith(
        "`learning_rate` 0.001 instead of 0.1, `warmup_steps` 100 instead of None"
    )
    decays = [keras.optimizers.schedules.ExponentialDecay(r, 9, 0.5) for r in (1, 2)]
    error = differences(*(settings(rate=decay) for decay in decays), tmp_path)
    assert str(error).endswith("`initial_learning_rate` 2 instead of 1")


def test_another_preset_is_the_only_difference_reported(tmp_path):
    one = settings({"class_name": "A"}, data={"preset": "a"}, label_smoothing=0.1)
    two = settings({"class_name": "B"}, data={"preset": "b"}, label_smoothing=0.2)
    error = differences(one, two, tmp_path)
    assert error.differences == (("preset", "a", "b"),)


def test_many_differences_are_counted_and_long_values_cut(tmp_path):
    one = settings(data={f"key{i}": "a" * 99 for i in range(9)})
    message = str(differences(one, settings(), tmp_path))
    assert message.endswith(", and 3 more") and "a" * 39 + "…" in message


def test_what_does_not_change_the_updates_may_differ(tmp_path):
    given = settings(patience=3, save_every=7, log_every=8, average_last=2)
    check_same_run(tmp_path, settings(), given)
    told = {**settings(), "tokenizer": "1"}
    error = differences(told, {**given, "tokenizer": "0"}, tmp_path)
    assert error.differences == (("tokenizer", "1", "0"),)


def test_model_is_described_by_what_it_is_not_by_its_names():
    assert describe_model(toy_model()) == describe_model(toy_model())
    assert describe_model(toy_model()) != describe_model(toy_model(dropout=0.1))

    def functional(units):
        inputs = keras.Input((3,))
        return keras.Model(inputs, keras.layers.Dense(units)(inputs))

    assert describe_model(functional(2)) == describe_model(functional(2))
    assert describe_model(functional(2)) != describe_model(functional(3))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "is missing"),
        ("{", "is cut short or not JSON"),
        ('{"training": {}}', "is incomplete"),
    ],
)
def test_settings_that_cannot_be_read(tmp_path, content, problem):
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    assert read_settings(tmp_path) == {}
    (tmp_path / "state/state-00000001").mkdir(parents=True)
    with pytest.raises(
        DamagedFolderError,
        match=f"restored from .*: config.json {problem}.*: {path}",
    ):
        read_settings(tmp_path)
    path.write_text(json.dumps(settings()))
    assert read_settings(tmp_path) == settings()


@pytest.fixture
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


def test_the_vocabulary_is_that_of_the_cache_with_its_tags(
    tmp_path, corpus_folder, corpus_cache
):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    mixed = mix_corpora([corpus, corpus], tags=["<a>", ""], cache_dir=tmp_path)
    prepare_vocabulary(tmp_path, mixed, 50, {"model_type": "bpe"})
    learned = learn_vocabulary(mixed, 50, model_type="bpe")
    assert (tmp_path / TOKENIZER).read_bytes() == learned.model_bytes


def test_what_is_there_stays(tmp_path, corpus_folder, corpus_cache):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    (tmp_path / TOKENIZER).write_bytes(b"first")
    prepare_vocabulary(tmp_path, corpus, 50, {})
    copy_vocabulary(tmp_path, tmp_path / "run")
    (tmp_path / TOKENIZER).write_bytes(b"second")
    copy_vocabulary(tmp_path, tmp_path / "run")
    assert (tmp_path / "run" / TOKENIZER).read_bytes() == b"first"


def test_a_run_keeps_its_tokenizer(corpus, tmp_path):
    first = run_settings.run_tokenizer(tmp_path, {}, corpus, 40, {})
    assert first.vocabulary_size == 40
    other = Tokenizer.train(corpus.files("test"), 40)
    other.save(tmp_path / "tokenizer.model")
    assert (
        run_settings.run_tokenizer(tmp_path, {}, corpus, 40, {}).sha256 == other.sha256
    )
    assert first.sha256 != other.sha256
    with pytest.raises(DifferentSettingsError, match="`vocabulary_size` 60 instead"):
        run_settings.run_tokenizer(tmp_path, {}, corpus, 60, {})


def test_a_changed_tokenizer_is_noticed(corpus, tmp_path):
    tokenizer = run_settings.run_tokenizer(tmp_path, {}, corpus, 40, {})
    saved = {"tokenizer": tokenizer.sha256}
    path = tmp_path / "tokenizer.model"
    tokenizer.save(path)
    again = run_settings.run_tokenizer(tmp_path, saved, corpus, 40, {})
    assert again.sha256 == tokenizer.sha256
    content = bytearray(tokenizer.model_bytes)
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFolderError, match=f"{path} is not .* restore it"):
        run_settings.run_tokenizer(tmp_path, saved, corpus, 40, {})


def test_a_run_learns_the_subwords_asked_for(corpus, tmp_path):
    bpe = run_settings.run_tokenizer(tmp_path, {}, corpus, 40, {"model_type": "bpe"})
    assert bpe.sha256 == Tokenizer.train(corpus.files("train"), 40, "bpe").sha256
    assert bpe.sha256 != run_settings.run_tokenizer(tmp_path, {}, corpus, 40, {}).sha256


def test_a_run_keeps_its_precision(monkeypatch):
    monkeypatch.setattr(run_settings, "faster_precision", lambda: "measured")
    assert run_settings.run_precision({}) == "measured"
    saved = {"training": {"precision": "mixed_float16"}}
    assert run_settings.run_precision(saved) == "mixed_float16"
