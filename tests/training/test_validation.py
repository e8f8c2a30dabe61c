"""BLEU, the best model and early stopping."""

import shutil

import pytest
import sacrebleu

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import validation
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.training.validation import AffordableBLEU
from keras_attnvariants.training.validation import BestModel
from keras_attnvariants.training.validation import EarlyStopping
from keras_attnvariants.training.validation import ValidationBLEU
from tests.training import toy

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

REFERENCES = ["the cat sat on the mat today", "a dog ran over the green hill"]


def test_bleu_is_sacrebleus_and_goes_into_the_logs():
    translations = ["the cat sat on the mat", "a dog ran over a green hill"]
    callback = ValidationBLEU(lambda texts: translations, ["x", "y"], REFERENCES)
    logs = {}
    callback.on_epoch_end(0, logs)
    expected = sacrebleu.corpus_bleu(translations, [REFERENCES]).score
    assert logs == {"val_bleu": expected} and 50 < expected < 100


def test_translate_gets_the_raw_sources():
    seen = []
    ValidationBLEU(
        lambda s: seen.extend(s) or REFERENCES, ["x", "y"], REFERENCES
    ).score()
    assert seen == ["x", "y"]


@pytest.mark.parametrize(("sources", "references"), [([], []), (["x"], REFERENCES)])
def test_texts_must_be_parallel(sources, references):
    with pytest.raises(ValueError, match=r"Received: \d sources, \d references"):
        ValidationBLEU(list, sources, references)


class SlowTranslator:
    """Takes its time, on a clock of its own, and knows which sentence is which."""

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
    """Validations every 100 seconds, of 100 sentences that take so many seconds each;
    returns the BLEU of each."""

    def validate(seconds_per_sentence, count=4):
        translate = SlowTranslator(seconds_per_sentence)
        monkeypatch.setattr(validation.time, "monotonic", lambda: translate.now)
        sources = [f"{'long ' * (i % 7)} sentence number {i}" for i in range(100)]
        references = [source.upper() for source in sources]
        callback = AffordableBLEU(translate, sources, references)
        found = []
        for _ in range(count):
            callback.on_train_begin()
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


def decisions(monitor, values, tmp_path):
    """The steps at which the model was saved."""
    progress = Progress()
    callback = BestModel(tmp_path / "best", monitor, progress, None)
    callback.set_model(toy.toy_model())
    steps = []
    for progress.step, value in enumerate(values, 1):
        callback.on_epoch_end(0, {monitor: value})
        if callback.best_step == progress.step:
            steps.append(progress.step)
    return steps, callback.get_state()


def test_best_model_by_bleu_and_by_loss(tmp_path):
    values = [3.0, 2.0, 3.0, 4.0]
    steps, state = decisions("val_bleu", values, tmp_path)
    assert steps == [1, 4] and (state["best"], state["best_step"]) == (4.0, 4)
    steps, state = decisions("val_loss", values, tmp_path)
    assert steps == [1, 2] and (state["best"], state["best_step"]) == (2.0, 2)


def test_best_is_a_model_folder_with_the_weights_of_its_step(tmp_path):
    tokenizer = toy.toy_tokenizer()
    _, result = toy.run(tmp_path, toy.toy_config(steps=24), tokenizer=tokenizer)
    model, _ = toy.run(tmp_path / "short", toy.toy_config(steps=result.best_step))
    best, saved = load_model(tmp_path / "best")
    assert best.get_config()["width"] == 8
    assert toy.same(to_arrays(best.weights), to_arrays(model.weights))
    assert saved.model_bytes == tokenizer.model_bytes
    assert (tmp_path / "tokenizer.model").read_bytes() == tokenizer.model_bytes


class Stoppable:
    stop_training = False


def test_early_stopping_waits_for_its_patience(tmp_path):
    progress, model = Progress(), Stoppable()
    best = BestModel(tmp_path / "best", "val_bleu", progress, None)
    callback = EarlyStopping(30, best, progress)
    callback.set_model(model)
    for progress.step in (10, 20, 30, 40, 50):
        if progress.step == 20:
            best.best_step = 20
        callback.on_epoch_end(0)
        assert model.stop_training == (progress.step == 50)


def test_early_stopping_ends_the_run_and_a_resume_does_not_go_on(tmp_path):
    config = toy.toy_config(steps=80, patience=1, learning_rate=1e-9)
    _, result = toy.run(tmp_path, config)
    assert result.stopped_early and result.step == 16 and result.best_step == 8
    _, again = toy.run(tmp_path, config)
    assert again == result


def test_patience_given_at_a_resume_counts_from_the_best_model(tmp_path):
    config = toy.toy_config(steps=40, learning_rate=1e-9)
    toy.run(tmp_path, config)
    config = toy.toy_config(steps=80, learning_rate=1e-9, patience=6)
    _, result = toy.run(tmp_path, config)
    assert result.stopped_early and result.step == 56 and result.best_step == 8
    # More patience continues a run that was stopped for lack of it.
    config = toy.toy_config(steps=80, learning_rate=1e-9, patience=8)
    _, result = toy.run(tmp_path, config)
    assert result.stopped_early and result.step == 72


def test_bleu_given_at_a_resume_scores_the_best_model_anew(tmp_path, capsys):
    config = toy.toy_config(steps=16, learning_rate=1e-9)
    model, first = toy.run(tmp_path, config, bleu=False)
    assert first.monitor == "val_loss"
    best = (tmp_path / "best/model.weights.h5").read_bytes()
    config = toy.toy_config(steps=32, learning_rate=1e-9)
    _, second = toy.run(tmp_path, config)
    assert second.monitor == "val_bleu" and second.best_step == first.best_step
    assert "now chosen by val_bleu" in capsys.readouterr().out
    scores = [e["val_bleu"] for e in toy.log(tmp_path) if "val_bleu" in e]
    assert second.best == pytest.approx(scores[0])
    assert (tmp_path / "best/model.weights.h5").read_bytes() == best
    _, again = toy.run(tmp_path, config)
    assert again == second
    assert "now chosen by" not in capsys.readouterr().out


def test_a_best_model_that_was_deleted_is_written_again(tmp_path, capsys):
    toy.run(tmp_path, toy.toy_config(steps=8))
    shutil.rmtree(tmp_path / "best")
    _, result = toy.run(tmp_path, toy.toy_config(steps=16))
    [line] = capsys.readouterr().err.splitlines()
    assert "best is missing" in line
    assert result.best_step == 16 and load_model(tmp_path / "best").model


def test_affordable_bleu_needs_texts():
    with pytest.raises(ValueError, match="equally many.*Received: 0 sources"):
        AffordableBLEU(list, [], [])
