"""Averages of weights: of the last validated steps, and moving ones."""

import json
import shutil

import keras
import ml_dtypes
import numpy as np
import pytest

from keras_attnvariants import training
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import run_models
from keras_attnvariants.training.callbacks import Progress
from keras_attnvariants.training.run_models import BestModel
from keras_attnvariants.training.run_models import CheckpointAverager
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from tests.training import toy
from tests.training.toy import same

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


class Weights:
    """The parts of a model that averaging needs."""

    def __init__(self, *values):
        self.weights = [keras.Variable(value) for value in values]

    def arrays(self):
        return [np.asarray(weight.numpy()) for weight in self.weights]


def keep(directory, models, last=5):
    progress = Progress()
    averager = CheckpointAverager(directory, last, progress)
    for step, model in enumerate(models, 1):
        progress.step = step
        averager.set_model(model)
        averager.on_epoch_end(0)
    return averager


def random_weights(seed, dtype="float32"):
    values = np.random.default_rng(seed).normal(size=(4, 3)).astype(dtype)
    return Weights(values, np.array(seed, "int32"))


@pytest.mark.parametrize("dtype", ["float32", "float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_average_of_identical_weights_is_the_same_bit_by_bit(tmp_path, dtype, count):
    model = random_weights(1, dtype)
    averager = keep(tmp_path, [model] * count)
    assert same(averager.mean(), model.arrays())
    assert averager.count == count


def test_average_of_two_is_their_mean(tmp_path):
    first, second = map(random_weights, (1, 2))
    found, number = keep(tmp_path, [first, second]).mean()
    mean = (first.arrays()[0] + second.arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)
    assert number == 2  # integers are not averaged


def test_only_the_last_are_kept(tmp_path):
    models = [random_weights(seed) for seed in range(5)]
    averager = keep(tmp_path, models, last=2)
    assert len(list(tmp_path.iterdir())) == 2
    found, _ = averager.mean()
    assert averager.count == 2
    mean = (models[3].arrays()[0].astype("float64") + models[4].arrays()[0]) / 2
    np.testing.assert_allclose(found, mean, rtol=0, atol=1e-7)


def test_damaged_weights_are_left_out_and_named(tmp_path, capsys):
    averager = keep(tmp_path, [random_weights(1), random_weights(2)])
    (tmp_path / "step-000000002/weights.npz").write_bytes(b"PK")
    assert same(averager.mean(), random_weights(1).arrays())
    assert averager.count == 1
    assert "step-000000002 is damaged" in capsys.readouterr().err


def test_steps_still_to_be_done_are_forgotten(tmp_path):
    averager = keep(tmp_path, [random_weights(seed) for seed in range(4)])
    (tmp_path / "tmp-step-000000005").mkdir()
    averager.remove_after(2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-000000001", "step-000000002"]
    averager.mean()
    assert averager.count == 2


def test_without_weights_there_is_no_average(tmp_path):
    averager = keep(tmp_path, [random_weights(seed) for seed in range(3)])
    shutil.rmtree(tmp_path / "step-000000002")
    averager.mean()
    assert averager.count == 2
    shutil.rmtree(tmp_path)
    with pytest.raises(DamagedFolderError, match=f"no validated .*{tmp_path}"):
        averager.mean()


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
        # BLEU for information only, which the average does not have.
        ([("period", "val_bleu", 9.0), ("averaged", "val_loss", 3.0)], "averaged"),
    ],
)
def test_the_better_model_of_a_run(events, better, tmp_path):
    lines = [
        json.dumps({"event": event, "step": 1, name: x}) + "\n"
        for event, name, x in events
    ]
    (tmp_path / "log.jsonl").write_text("".join(lines))
    assert run_models.better_model(tmp_path / "log.jsonl") == better
    # A process that was killed may leave half a line.
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "per')
    assert run_models.better_model(tmp_path / "log.jsonl") == better


@pytest.mark.parametrize(("bleu", "loss"), [(21.0, 3.0), (22.0, 3.1)])
def test_the_record_of_the_better_model(bleu, loss, tmp_path):
    periods = [{"val_bleu": 20.0, "val_loss": 2.9}, {"val_bleu": bleu, "val_loss": 3.1}]
    average = {"event": "averaged", "step": 2, "val_bleu": 21.0, "val_loss": 3.0}
    events = [*({"event": "period", "step": 1, **each} for each in periods), average]
    text = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "log.jsonl").write_text(text)
    assert run_models.better_event(tmp_path / "log.jsonl")["val_loss"] == loss


def test_the_better_model_is_loaded(run_folder, tmp_path):
    model, tokenizer = training.load_run(str(run_folder))
    assert model.name == "averaged"
    assert tokenizer.vocabulary_size == 50
    with pytest.raises(FileNotFoundError, match="`run_dir` must be.*Received: "):
        training.load_run(tmp_path)


def decisions(monitor, values, tmp_path):
    """Steps at which the model was saved."""
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


def test_early_stopping_waits_for_its_patience(tmp_path):
    progress, model = Progress(), toy.toy_model()
    best = BestModel(tmp_path / "best", "val_bleu", progress, None, patience=30)
    best.set_model(model)
    model.stop_training = False
    scores = {10: 1.0, 20: 2.0, 30: 1.5, 40: 2.0, 50: 1.0}
    for progress.step, score in scores.items():
        best.on_epoch_end(0, {"val_bleu": score})
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


def test_bleu_given_at_a_resume_chooses_the_best_model_anew(tmp_path, capsys):
    config = toy.toy_config(steps=16, learning_rate=1e-9)
    model, first = toy.run(tmp_path, config, bleu=False)
    assert first.monitor == "val_loss"
    config = toy.toy_config(steps=32, learning_rate=1e-9)
    _, second = toy.run(tmp_path, config)
    assert second.monitor == "val_bleu" and second.best_step == 24
    assert "was chosen by val_loss, not val_bleu" in capsys.readouterr().err
    scores = [e["val_bleu"] for e in toy.log(tmp_path) if "val_bleu" in e]
    assert second.best == pytest.approx(scores[0])
    _, again = toy.run(tmp_path, config)
    assert again == second
    assert "was chosen by" not in capsys.readouterr().err


def test_a_best_model_that_was_deleted_is_written_again(tmp_path, capsys):
    toy.run(tmp_path, toy.toy_config(steps=8))
    shutil.rmtree(tmp_path / "best")
    _, result = toy.run(tmp_path, toy.toy_config(steps=16))
    [line] = capsys.readouterr().err.splitlines()
    assert "best is missing" in line
    assert result.best_step == 16 and load_model(tmp_path / "best").model
