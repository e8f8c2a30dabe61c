"""BLEU, translations to read, and what they may cost."""

import io
import sys

import pytest
import sacrebleu
from rich.console import Console

from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import ProgressBar
from keras_attnvariants.training import validation
from keras_attnvariants.training.validation import ValidationScore
from keras_attnvariants.training.validation import greedy_callbacks
from keras_attnvariants.training.validation import show_samples

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

REFERENCES = ["the cat sat on the mat today", "a dog ran over the green hill"]


def test_bleu_is_sacrebleus_and_goes_into_the_logs():
    translations = ["the cat sat on the mat", "a dog ran over a green hill"]
    callback = ValidationScore(lambda texts: translations, ["x", "y"], REFERENCES)
    logs = {}
    callback.on_epoch_end(0, logs)
    expected = sacrebleu.corpus_bleu(translations, [REFERENCES]).score
    assert logs == {"val_bleu": expected} and 50 < expected < 100


def test_translate_gets_the_raw_sources():
    seen = []
    ValidationScore(
        lambda s: seen.extend(s) or REFERENCES, ["x", "y"], REFERENCES
    ).score()
    assert seen == ["x", "y"]


@pytest.mark.parametrize(("sources", "references"), [([], []), (["x"], REFERENCES)])
def test_texts_must_be_parallel(sources, references):
    with pytest.raises(ValueError, match=r"Received: \d sources, \d references"):
        ValidationScore(list, sources, references)


class SlowTranslator:
    """Takes time on a clock of its own, and recognizes each sentence."""

    def __init__(self, seconds_per_sentence):
        self.now = 0.0
        self.translated = 0
        self.seconds_per_sentence = seconds_per_sentence

    def __call__(self, texts):
        self.now += self.seconds_per_sentence * len(texts)
        self.translated += len(texts)
        return [text.upper() for text in texts]


@pytest.fixture
def affordable(monkeypatch):
    """Function of the seconds per sentence: the BLEU of each validation.

    Each validation has 100 sentences, and comes after 100 seconds.
    """

    def validate(seconds_per_sentence, count=4):
        translate = SlowTranslator(seconds_per_sentence)
        monkeypatch.setattr(validation.time, "monotonic", lambda: translate.now)
        sources = [f"{'long ' * (i % 7)} sentence number {i}" for i in range(100)]
        references = [source.upper() for source in sources]
        callback = ValidationScore(translate, sources, references, share=0.05)
        found = []
        for _ in range(count):
            translate.now += 100.0
            logs = {}
            callback.on_epoch_end(0, logs)
            found.append(logs.get("val_bleu"))
        spent = translate.translated * seconds_per_sentence
        assert callback.spent == pytest.approx(spent)
        return found, callback.spent / translate.now

    return validate


def test_cheap_bleu_is_taken_at_every_validation(affordable):
    found, share = affordable(0.04)
    assert found == pytest.approx([100.0] * 4)  # each with its own reference
    assert 0.03 < share < 0.05


def test_dear_bleu_is_taken_at_some_validations_and_keeps_to_its_share(affordable):
    found, share = affordable(0.1, count=12)  # 10 seconds each time
    assert 3 <= sum(score is not None for score in found) <= 6
    assert share <= 0.05


def test_bleu_that_cannot_be_paid_is_given_up_at_once(affordable):
    found, share = affordable(10.0, count=12)  # 1000 seconds
    assert found == [None] * 12
    assert share < 0.3  # one look at the clock: 32 sentences


def test_affordable_bleu_needs_texts():
    with pytest.raises(ValueError, match="same length.*Received: 0 sources"):
        ValidationScore(list, [], [], share=0.05)


SAMPLES = [
    ("ein [Haus] :smile:", "a [house]"),
    ("ein sehr langer Satz " * 8, "a very long sentence " * 8),
]


def show(**options):
    show_samples(lambda texts: [text.upper() for text in texts], SAMPLES, **options)


def test_samples_in_a_file_are_whole(capsys):
    show()
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == [
        "  source       ein [Haus] :smile:",
        "  translation  EIN [HAUS] :SMILE:",
        "  reference    a [house]",
    ]
    assert len(lines) == 6 and len(lines[3]) > 160


def test_samples_on_a_terminal_take_a_line_each(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    show()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) == 80
    assert lines[3].endswith("…")


def test_samples_go_above_a_bar_and_not_into_it(monkeypatch):
    file = io.StringIO()
    file.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setenv("COLUMNS", "80")
    console = Console(stderr=True, force_terminal=True, force_interactive=True)
    with ProgressBar(10, console=console) as bar:
        bar.on_train_begin()
        show()
    before, _ = file.getvalue().split("  source       ein [Haus]")
    assert before.endswith("\r\x1b[2K")  # the bar is erased


@pytest.fixture
def corpus(corpus_folder, corpus_cache):
    return load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)


@pytest.mark.parametrize(
    ("score_sentences", "samples", "kinds"),
    [
        (None, 2, [0.05, "samples"]),
        (None, 0, [0.05]),
        (7, 3, [None, "samples"]),
        (0, 0, []),
    ],
)
def test_what_is_translated(score_sentences, samples, kinds, corpus, run_folder):
    model, tokenizer = load_model(run_folder / "best")
    callbacks = greedy_callbacks(model, tokenizer, corpus, score_sentences, samples)
    assert [getattr(c, "share", "samples") for c in callbacks] == kinds


def test_bleu_and_samples_are_compiled_once(corpus, run_folder, capsys):
    model, tokenizer = load_model(run_folder / "best")
    bleu, samples = greedy_callbacks(model, tokenizer, corpus, None, 2)
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
