"""Sample translations: beside their sources, whole in files, short on terminals."""

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import ProgressBar
from keras_attnvariants.training.samples import SampleTranslations
from keras_attnvariants.training.samples import translations_to_read
from keras_attnvariants.training.validation import AffordableBLEU

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

SOURCES = ["ein [Haus] :smile:", "ein sehr langer Satz " * 8]
REFERENCES = ["a [house]", "a very long sentence " * 8]


@pytest.fixture
def samples():
    return SampleTranslations(
        lambda texts: [text.upper() for text in texts], SOURCES, REFERENCES
    )


def test_samples_in_a_file_are_whole(samples, capsys):
    samples.on_epoch_end(0, {})
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "  source       ein [Haus] :smile:",
        "  translation  EIN [HAUS] :SMILE:",
        "  reference    a [house]",
    ]
    assert len(lines) == 6 and len(lines[3]) > 160


def test_samples_on_a_terminal_take_a_line_each(samples, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    samples.on_epoch_end(0, {})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) == 80
    assert lines[3].endswith("…")


def test_samples_go_above_a_bar_and_not_into_it(samples, monkeypatch):
    file = io.StringIO()
    file.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setenv("COLUMNS", "80")
    console = Console(stderr=True, force_terminal=True, force_interactive=True)
    with ProgressBar(10, console=console) as bar:
        bar.on_train_begin()
        samples.on_epoch_end(0, {})
    before, _ = file.getvalue().split("  source       ein [Haus]")
    assert before.endswith("\r\x1b[2K")  # the bar is erased


@pytest.fixture
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.mark.parametrize(
    ("bleu_sentences", "samples", "kinds"),
    [
        (None, 2, [AffordableBLEU, SampleTranslations]),
        (None, 0, [AffordableBLEU]),
        (7, 3, [SampleTranslations]),
        (0, 0, []),
    ],
)
def test_what_is_translated_to_be_read(
    bleu_sentences, samples, kinds, corpus, run_folder
):
    model, tokenizer = load_model(run_folder / "best")
    callbacks = translations_to_read(model, tokenizer, corpus, bleu_sentences, samples)
    assert [type(callback) for callback in callbacks] == kinds


def test_bleu_and_samples_are_compiled_once(corpus, run_folder, capsys):
    model, tokenizer = load_model(run_folder / "best")
    bleu, samples = translations_to_read(model, tokenizer, corpus, None, 2)
    bleu.on_train_begin()
    bleu._began -= 1e6  # affordable
    logs = {}
    bleu.on_epoch_end(0, logs)
    samples.on_epoch_end(0, logs)
    assert 0 <= logs["val_bleu"] <= 100
    assert bleu._translate.__self__.num_compilations == 1
    lines = capsys.readouterr().err.splitlines()
    sources, references = corpus.read_lines("validation")
    assert lines[0] == f"  source       {sources[0]}"
    assert lines[3] == f"  source       {sources[10]}"
    assert lines[5] == f"  reference    {references[10]}"


def test_a_corpus_without_validation(corpus, run_folder):
    without = replace(corpus, splits={"train": corpus.splits["train"]})
    model, tokenizer = load_model(run_folder / "best")
    assert translations_to_read(model, tokenizer, without, None, 2) == []
