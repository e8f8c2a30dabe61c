"""BLEU, the best model and early stopping."""

import json

import pytest
import sacrebleu

from keras_attnvariants.models import load_model
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.state import to_arrays
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
    assert steps == [1, 4] and state == {"best": 4.0, "best_step": 4}
    steps, state = decisions("val_loss", values, tmp_path)
    assert steps == [1, 2] and state == {"best": 2.0, "best_step": 2}


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


def test_early_stopping_waits_for_its_patience_and_keeps_count_over_a_resume():
    progress, model = Progress(), Stoppable()
    values = [5.0, 6.0, 5.5, 5.9, 5.8, 7.0]
    state, stopped_after = None, None
    for index, value in enumerate(values):
        callback = EarlyStopping("val_bleu", 3, progress)
        callback.set_model(model)
        if state:
            callback.set_state(json.loads(json.dumps(state)))
        callback.on_epoch_end(0, {"val_bleu": value})
        state = callback.get_state()
        if progress.stopped:
            stopped_after = index
            break
    assert stopped_after == 4 and model.stop_training


def test_early_stopping_ends_the_run_and_a_resume_does_not_go_on(tmp_path):
    config = toy.toy_config(steps=80, patience=1, learning_rate=1e-9)
    _, result = toy.run(tmp_path, config)
    assert result.stopped_early and result.step == 16 and result.best_step == 8
    _, again = toy.run(tmp_path, config)
    assert again == result
