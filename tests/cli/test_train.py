"""`kav train`: from files to a run; a newcomer's mistakes are one clear line each."""

import inspect
import os
import shutil
import sys
from pathlib import Path

import keras
import pytest

from keras_attnvariants.cli import train as command
from keras_attnvariants.cli.train import DATA
from keras_attnvariants.cli.train import load_callbacks
from keras_attnvariants.cli.train import named_by_options
from keras_attnvariants.training import DifferentSettingsError
from keras_attnvariants.training.run_settings import Difference
from keras_attnvariants.utils import importing
from keras_attnvariants.utils.locks import lock_folder
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


@pytest.fixture
def folder(corpus_folder, tmp_path):
    """A copy of the corpus to damage."""
    return shutil.copytree(corpus_folder, tmp_path / "corpus")


def train(kav, tmp_path, data, *options, source="xx", target="yy"):
    languages = ("--source", source, "--target", target)
    where = ("--data", data, "--run", tmp_path / "run")
    result = kav("train", *where, *languages, *options)
    assert not (tmp_path / "run").exists()
    return result


def test_a_missing_folder(kav, tmp_path):
    result = train(kav, tmp_path, tmp_path / "nowhere")
    check_error(result, "no such folder", str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("cores", "before", "after"), [(8, None, "1"), (8, "2", "2"), (9, None, None)]
)
def test_few_cores_compute_parts_of_batches(
    kav, tmp_path, monkeypatch, cores, before, after
):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", before or "")
    if before is None:
        monkeypatch.delenv("TF_NUM_INTRAOP_THREADS")
    monkeypatch.setattr(importing, "cores", lambda: cores)
    train(kav, tmp_path, tmp_path / "nowhere")
    assert os.environ.get("TF_NUM_INTRAOP_THREADS") == after


def test_an_unknown_corpus_name_gets_the_nearest(kav, tmp_path):
    check_error(train(kav, tmp_path, "bible-en-de"), "bible-de-en")


def test_unequal_line_counts(kav, tmp_path, folder):
    with open(folder / "train.xx", "a") as file:
        file.write("one more\n")
    result = train(kav, tmp_path, folder)
    files = "train.xx", "train.yy"
    check_error(result, "the same number of lines", "601", "600", *files)


def test_a_binary_file(kav, tmp_path, folder):
    (folder / "train.yy").write_bytes(bytes(range(256)) * 100)
    check_error(train(kav, tmp_path, folder), "binary", "train.yy")


def test_a_file_in_another_encoding(kav, tmp_path, folder):
    lines = (folder / "train.yy").read_text().split("\n")
    text = "\n".join([*(f"ü{line}" for line in lines[:200]), *lines[200:]])
    (folder / "train.yy").write_bytes(text.encode("latin-1"))
    result = train(kav, tmp_path, folder)
    check_error(result, "33.3% of the lines", "iconv", "train.yy")
    result = train(kav, tmp_path, folder, "--max-invalid", 0.3)
    check_error(result, "30.0% that `max_invalid` allows")


def test_an_empty_corpus(kav, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").write_bytes(b"")
    check_error(train(kav, tmp_path, folder), "'train' holds no usable pair")


def test_an_absent_language(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, target="fr")
    check_error(result, "'fr'", "languages there: xx, yy")


def test_no_training_split(kav, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").unlink()
    check_error(train(kav, tmp_path, folder), "'train'", "'validation', 'test'")


def test_an_unknown_preset_gets_the_nearest(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--preset", "kav/hc-sb/bible")
    check_error(result, "kav/hc-sa/bible")


@pytest.mark.parametrize(
    ("task", "preset", "phrase"),
    [
        (
            "translation",
            "kav/base/digits",
            "'translation' has texts, and models of",
        ),
        ("summarisation", "kav/base/digits", "'summarisation' has texts"),
        ("speech", "kav/base/bible", "'speech' has recordings, and models"),
        ("speech", "kav/base/digits", "'audio' for the task 'speech'"),
    ],
)
def test_a_preset_of_another_task(kav, tmp_path, folder, task, preset, phrase):
    result = train(kav, tmp_path, folder, "--task", task, "--preset", preset)
    check_error(result, phrase)


def test_recordings_have_a_task(kav, tmp_path, folder):
    check_error(train(kav, tmp_path, folder, source="audio"), "for no other task")


def test_a_vocabulary_too_large_for_the_corpus(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--vocabulary-size", 7000)
    check_error(result, "vocabulary_size=7000", "--vocabulary-size", "at most")


@pytest.mark.parametrize(
    ("option", "value", "phrase"),
    [
        ("--minutes", "0", "'--minutes'"),
        ("--steps", "-3", "'--steps'"),
        ("--warmup-steps", "0", "'--warmup-steps'"),
        ("--batch-tokens", "0", "'--batch-tokens'"),
        ("--precision", "float3", "float3"),
        ("--label-smoothing", "2", "'--label-smoothing'"),
        ("--learning-rate", "0", "'--learning-rate'"),
        ("--clip-norm", "0", "'--clip-norm'"),
        ("--data-weight", "0", "'--data-weight'"),
    ],
)
def test_numbers_out_of_range(option, value, phrase, kav, tmp_path, folder):
    sizes = ("--vocabulary-size", 50, "--width", 16, "--layers", 1, "--heads", 2)
    result = train(kav, tmp_path, folder, *sizes, option, value)
    check_error(result, phrase)


def test_a_number_that_is_not_one(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--steps", "many")
    check_error(result, "'--steps'", "valid integer")


def test_options_reach_the_training(kav, tmp_path, folder, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        "keras_attnvariants.training.train_preset",
        lambda preset, corpus, run, **options: seen.update(options),
    )
    chosen = {"clip-norm": 1.5, "patience": 3, "average-last": 2, "save-every": 50}
    options = [str(word) for name, x in chosen.items() for word in (f"--{name}", x)]
    options += ["--subwords", "bpe", "--character-coverage", "0.9995"]
    options += ["--callback", "keras.callbacks:TerminateOnNaN"]
    where = ("--data", folder, "--run", tmp_path / "run", "--source", "xx")
    stdout(kav("train", *where, "--target", "yy", *options))
    assert seen["subwords"] == {"model_type": "bpe", "character_coverage": 0.9995}
    assert {"clipnorm": 1.5, "patience": 3, "average_last": 2, "save_every": 50} == {
        name: value
        for name, value in seen["settings"].items()
        if name != "validate_every"
    }
    assert type(seen["callbacks"][-1]).__name__ == "TerminateOnNaN"


@pytest.fixture
def seen(monkeypatch):
    """The arguments that reach the training, which is left out."""
    found = {}

    def train(preset, corpus, run, **options):
        found.update(options, preset=preset.name)

    monkeypatch.setattr("keras_attnvariants.training.train_preset", train)
    return found


def test_a_run_goes_on_from_a_model(kav, tmp_path, folder, seen):
    name = "kav/hc-sa/tatoeba-en-de"
    lora = ("--lora", 4, "--lora-layers", "query", "--lora-layers", "value")
    where = ("--data", folder, "--run", tmp_path / "run", "--source", "xx")
    call = ("train", *where, "--target", "yy", "--from", name)
    stdout(kav(*call, "--freeze", "embeddings", *lora))
    tuning = seen["fine_tuning"]
    assert tuning.model == seen["preset"] == name
    assert (tuning.freeze, tuning.lora_rank) == (["embeddings"], 4)
    assert tuning.lora_layers == ["query", "value"]
    stdout(kav(*call, "--preset", "kav/base/tatoeba-en-de"))
    assert seen["preset"] == "kav/base/tatoeba-en-de"


def test_a_vocabulary_of_ones_own(kav, tmp_path, folder, seen, run_folder):
    vocabulary = run_folder / "tokenizer.model"
    where = ("--data", folder, "--run", tmp_path / "run", "--source", "xx")
    stdout(kav("train", *where, "--target", "yy", "--tokenizer", vocabulary))
    assert seen["tokenizer"].vocabulary_size == 50
    assert seen["preset"] == "kav/hc-sa/bible"


MODEL = ("--from", "kav/base/tatoeba-en-de")


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--from", "kav/hc-sa/tatoeba-en-fr"], "'kav/hc-sa/tatoeba-en-de'"),
        (["--freeze", "encoder"], "need --from"),
        (["--from", "x", "--lora-layers", "query"], "--lora-layers needs --lora"),
        (["--from", "x", "--lora", "0"], "'--lora'"),
        (["--from", "x", "--tokenizer", "y"], "--tokenizer cannot go with --from"),
        (
            [*MODEL, "--preset", "kav/lstm/tatoeba-en-de"],
            "same kind as the trained model",
        ),
        ([*MODEL, "--width", "64", "--heads", "5"], "must divide the width"),
        (["--tokenizer", "no.model"], "no.model"),
        (["--tokenizer", __file__], "must be a SentencePiece model"),
    ],
)
def test_starts_that_are_not_there(options, phrase, kav, tmp_path, folder):
    check_error(train(kav, tmp_path, folder, *options), phrase)
    assert not (tmp_path / "run").exists()


def test_a_missing_callback_is_refused(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--callback", "keras.callbacks:Nope")
    check_error(result, "`--callback` cannot be imported", "keras.callbacks:Nope")


@pytest.mark.slow
def test_a_run_with_other_options_or_in_use_or_diverging(kav, tmp_path, folder):
    """Each error is one line and exit code 2."""
    run = tmp_path / "run"
    where = ("--data", folder, "--run", run, "--source", "xx", "--target", "yy")
    sizes = ("--vocabulary-size", 50, "--width", 16, "--layers", 1)
    small = (*where, *sizes, "--feed-forward", 16, "--batch-tokens", 512)
    small = (*small, "--precision", "float32", "--validate-every", 4)
    stdout(kav("train", *small, "--heads", 2, "--steps", 4))
    other = kav("train", *small, "--heads", 4, "--steps", 4)
    check_error(other, str(run), "Received: --heads 4 instead of 2")
    with lock_folder(run):
        again = kav("train", *small, "--heads", 2, "--steps", 8)
        check_error(again, "is in use by process")
    # A renamed corpus with more test data is the same corpus.
    renamed = folder.rename(tmp_path / "renamed")
    for language in ("xx", "yy"):
        (renamed / f"test2.{language}").write_text("aba\n")
    small = ("--data", renamed, *small[2:])
    stdout(kav("train", *small, "--heads", 2, "--steps", 8))
    wild = ("--run", tmp_path / "wild", "--learning-rate", 1e6, "--warmup-steps", 1)
    result = kav("train", *small, "--heads", 2, "--steps", 8, *wild)
    assert result.exit_code == 2
    assert "the training has diverged" in result.stderr.splitlines()[-1]


def test_refusals_name_options():
    differences = [
        Difference("num_heads", 4, 3),
        Difference("batch_tokens", 4096, 2048),
        Difference("epsilon", 1e-9, 1e-8),
    ]
    expected = (
        "Received: --heads 3 instead of 4, --batch-tokens 2048 instead of 4096, "
        "`epsilon` 1e-08 instead of 1e-09"
    )
    with pytest.raises(ValueError, match=expected), named_by_options():
        raise DifferentSettingsError(Path("runs/first"), differences)


def test_options_that_are_named_exist():
    names = {option.split(",")[0][2:].replace("-", "_") for option in DATA.values()}
    assert names <= inspect.signature(command.train).parameters.keys()


MODULE = """
import keras
from keras.callbacks import Callback

def two():
    return [Callback(), keras.callbacks.TerminateOnNaN()]

def none():
    return 7

def demanding(number):
    return Callback()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the working directory."""
    name = f"callbacks_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    return name


def test_functions_and_classes_make_callbacks(module):
    callbacks = load_callbacks(f"{module}:two")
    callbacks += load_callbacks("keras.callbacks:TerminateOnNaN")
    kinds = [type(callback).__name__ for callback in callbacks]
    assert kinds == ["Callback", "TerminateOnNaN", "TerminateOnNaN"]
    assert all(isinstance(c, keras.callbacks.Callback) for c in callbacks)


@pytest.mark.parametrize(
    ("factory", "problem"),
    [
        ("two", "No module named 'two'"),
        ("keras.callbacks", "'module' object is not callable"),
        ("no_such_module:two", "No module named 'no_such_module'"),
        ("{module}:three", "has no attribute 'three'"),
        ("{module}:none", "which gives 7"),
        ("{module}:demanding", "missing 1 required positional argument: 'number'"),
        ("keras.callbacks:ModelCheckpoint", "missing 1 required positional argument"),
        (".relative:two", "invalid format"),
    ],
)
def test_functions_that_make_no_callbacks(module, factory, problem):
    factory = factory.format(module=module)
    with pytest.raises(ValueError, match=f"`--callback`.*{problem}") as caught:
        load_callbacks(factory)
    assert factory in str(caught.value) and "\n" not in str(caught.value)
