"""The folder of a run after one call of `train`, and refused calls."""

import dataclasses
import json
import os
import shutil

import keras
import numpy as np
import pytest

from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import read_model
from keras_attnvariants.training import TrainingState
from keras_attnvariants.training import callbacks
from keras_attnvariants.training import run_folder
from keras_attnvariants.training import run_settings
from keras_attnvariants.training.progress import ProgressBar
from keras_attnvariants.training.run_settings import DifferentSettingsError
from keras_attnvariants.training.state import to_arrays
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.locks import FolderInUseError
from keras_attnvariants.utils.locks import lock_folder
from keras_attnvariants.utils.machine import hardware
from tests.training import toy

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = toy.toy_config(data={"seed": 5, "batch_tokens": 40})
    model, result = toy.run(folder, config, tokenizer=toy.toy_tokenizer())
    return folder, config, model, result


def test_folder_of_a_finished_run(finished):
    folder, config, _, result = finished
    names = {path.name for path in folder.iterdir()} - {"tensorboard"}
    assert names == {
        "averaged",
        "best",
        "checkpoints",
        "config.json",
        "log.jsonl",
        "state",
        "tokenizer.model",
    }
    saved = json.loads((folder / "config.json").read_text())
    assert saved["training"] == config.to_dict()
    assert result.step == 26 and result.monitor == "val_bleu"
    assert not result.stopped_early


def test_model_keeps_the_last_weights_and_averaged_has_their_mean(finished):
    folder, _, model, _ = finished
    kept = []
    for path in sorted((folder / "checkpoints").iterdir()):
        with np.load(path / "weights.npz") as arrays:
            kept.append([arrays[key] for key in sorted(arrays.files)])
    assert len(kept) == 3
    assert toy.same(to_arrays(model.weights), kept[-1])
    averaged = load_model(folder / "averaged").model
    for array, *values in zip(to_arrays(averaged.weights), *kept, strict=True):
        np.testing.assert_allclose(array, np.mean(values, axis=0), rtol=1e-5, atol=1e-7)


def test_training_learns(tmp_path):
    config = toy.toy_config(steps=150, validate_every=75, save_every=75)
    toy.run(tmp_path, config, toy.toy_model(width=32, dropout=0.0))
    periods = [record for record in toy.log(tmp_path) if record["event"] == "period"]
    losses = [record["val_loss"] for record in periods]
    assert losses[-1] < losses[0] < np.log(toy.VOCABULARY)


@pytest.mark.parametrize("bleu", [True, False])
def test_without_validation_data(tmp_path, bleu):
    config = toy.toy_config(steps=8)
    _, result = toy.run(tmp_path, config, bleu=bleu, validation_data=None)
    assert result.monitor == ("val_bleu" if bleu else "loss")
    assert result.best_step == 8 and (result.averaged is not None) == bleu


def test_validation_data_may_be_gone_when_a_run_has_ended(tmp_path, capsys):
    config = toy.toy_config(steps=8)
    toy.run(tmp_path, config, bleu=False)
    _, result = toy.run(tmp_path, config, bleu=False, validation_data=None)
    assert result.monitor == "loss" and result.best is None and result.best_step == 8
    assert f"Best model at update 8: {tmp_path / 'best'}" in capsys.readouterr().out


def test_another_configuration_is_refused_with_both_values(finished):
    folder, config, _, _ = finished
    changes = {
        "clipnorm": 2.0,
        "data": {"seed": 6, "batch_tokens": 40},
        "learning_rate": 1e-3,
    }
    other = toy.toy_config(**changes)
    with pytest.raises(DifferentSettingsError) as caught:
        toy.run(folder, other, tokenizer=toy.toy_tokenizer())
    message = str(caught.value)
    assert f"{folder} holds a run with other settings" in message
    assert "Received: `clipnorm` 2 instead of 1, `seed` 6 instead of 5, " in message
    assert "`learning_rate` 0.001 instead of 0.01" in message
    assert "\n" not in message
    with pytest.raises(
        ValueError, match="`dropout` 0.1 instead of 0.3, `tokenizer` None"
    ):
        toy.run(folder, config, toy.toy_model(dropout=0.1))


def test_a_progress_bar_has_the_steps_of_the_run(tmp_path):
    with ProgressBar() as bar:
        toy.run(tmp_path, toy.toy_config(steps=3), callbacks=[bar])
    assert bar.steps == 3


def test_more_steps_may_be_asked_for(finished, tmp_path):
    """A continued run equals one that was longer from the start."""
    _, config, undisturbed, _ = finished
    toy.run(tmp_path, dataclasses.replace(config, steps=13))
    model, result = toy.run(tmp_path, config)
    assert result.step == config.steps == 26
    assert toy.same(toy.variables(model), toy.variables(undisturbed))


def test_fewer_steps_than_were_done_leave_a_model(tmp_path):
    """Even before the first validation: then the current weights are validated."""
    config = toy.toy_config(validate_every=500)
    stop = toy.stop_at(9)
    with pytest.raises(SystemExit):
        toy.run(tmp_path, config, callbacks=[stop])
    model, result = toy.run(tmp_path, dataclasses.replace(config, steps=8))
    assert result.step == result.best_step == 9 and result.averaged is not None
    for name in ("best", "averaged"):
        saved = load_model(tmp_path / name).model
        assert toy.same(to_arrays(saved.weights), to_arrays(model.weights))
    _, result = toy.run(tmp_path, dataclasses.replace(config, steps=12))
    assert result.step == 12


def test_the_first_state_does_not_wait_for_many_updates(tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "FIRST_STATE", 0.0)
    config = toy.toy_config(validate_every=500, save_every=500)
    steps = []

    def look(batch, logs):
        states = TrainingState(tmp_path / "state")
        if states.paths():
            steps.append(states.load_latest().progress["step"])
            raise KeyboardInterrupt

    watch = keras.callbacks.LambdaCallback(on_train_batch_begin=look)
    with pytest.raises(KeyboardInterrupt):
        toy.run(tmp_path, config, callbacks=[watch])
    assert steps == [1]


def test_a_run_belongs_to_its_backend(finished, monkeypatch):
    folder, config, _, _ = finished
    own = keras.backend.backend()
    settings = json.loads((folder / "config.json").read_text())
    assert settings["backend"] == own
    monkeypatch.setattr(run_settings.keras.backend, "backend", lambda: "another")
    with pytest.raises(
        DifferentSettingsError, match=f"`backend` another instead of {own}"
    ):
        toy.run(folder, config, tokenizer=toy.toy_tokenizer())


def test_a_run_names_its_machine_and_goes_on_on_another(tmp_path, monkeypatch):
    toy.run(tmp_path, toy.toy_config(steps=8))
    found = json.loads((tmp_path / "config.json").read_text())["machine"]
    assert found == hardware()
    monkeypatch.setattr(run_folder, "hardware", lambda: {"processor": "another"})
    toy.run(tmp_path, toy.toy_config(steps=16))
    assert toy.log(tmp_path)[-1]["step"] == 16
    found = json.loads((tmp_path / "config.json").read_text())["machine"]
    assert found == {"processor": "another"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"stopped": "maybe"},
        {"callbacks": []},
        {"logs": None},
        {"BestModel-1": []},
        {"BestModel-1": {"monitor": "val_loss", "best": [], "best_step": 8}},
        {"JsonLinesLogger-1": {"bytes": "x", "seconds": 1.0}},
    ],
)
def test_odd_progress_is_reported_in_a_line(tmp_path, wrong):
    toy.run(tmp_path, toy.toy_config(steps=8))
    store = TrainingState(tmp_path / "state")
    state = store.load_latest()
    [name] = wrong
    progress = state.progress
    (progress if name in progress else progress["callbacks"]).update(wrong)
    store.save(state.variables, progress)
    with pytest.raises(DamagedFolderError, match="remove it, .* Received: "):
        toy.run(tmp_path)


def test_a_folder_without_state_starts_from_the_beginning(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "log.jsonl").write_text("rest of a run that was killed early\n")
    (tmp_path / "tmp-best-x1y2").mkdir()
    toy.run(tmp_path, toy.toy_config(steps=4))
    assert toy.log(tmp_path)[0]["step"] == 4
    assert not (tmp_path / "tmp-best-x1y2").exists()


def test_precision_must_be_the_models(tmp_path):
    with pytest.raises(ValueError, match="Received: a model of policy 'float32'"):
        toy.run(tmp_path, toy.toy_config(precision="mixed_bfloat16"))


def test_further_metrics_are_weighted_and_logged(tmp_path):
    accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    model, _ = toy.run(
        tmp_path, toy.toy_config(steps=8), metrics=[accuracy], bleu=False
    )
    right = total = 0
    for inputs, labels, weights in toy.validation_data():
        predicted = np.argmax(model(inputs), axis=-1)
        right += np.sum((predicted == labels) * weights)
        total += np.sum(weights)
    (period,) = [record for record in toy.log(tmp_path) if record["event"] == "period"]
    assert period["val_accuracy"] == pytest.approx(right / total)


def test_deleted_checkpoints_are_noticed(finished, tmp_path):
    folder, config, _, _ = finished
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(copy / "checkpoints")
    averaged = (copy / "averaged/model.weights.h5").read_bytes()
    with pytest.raises(DamagedFolderError, match=f"to average;.*{copy}/checkpoints"):
        toy.run(copy, config, tokenizer=toy.toy_tokenizer())
    assert (copy / "averaged/model.weights.h5").read_bytes() == averaged


def test_a_folder_in_use_is_refused(tmp_path):
    message = f"{tmp_path} is in use by process"
    with lock_folder(tmp_path), pytest.raises(FolderInUseError, match=message):
        toy.run(tmp_path)


@pytest.mark.parametrize(
    "name", ["lock.json", "config.json", "log.jsonl", "state", "checkpoints", "best"]
)
def test_links_in_a_folder_from_someone_else_are_not_followed(finished, tmp_path, name):
    folder, config, *_ = finished
    run = shutil.copytree(folder, tmp_path / "run")
    theirs = tmp_path / "theirs"
    if (run / name).exists():
        (run / name).rename(theirs)
    else:
        theirs.write_text("content")
    (run / name).symlink_to(theirs)
    if theirs.is_dir():
        (theirs / "tmp-theirs").mkdir()
    before = {path: path.stat().st_mtime_ns for path in (theirs, *theirs.rglob("*"))}
    longer = dataclasses.replace(config, steps=config.steps + 4)
    if name == "best":
        with pytest.raises(DamagedFolderError, match="no link"):
            read_model(run / name)
    else:
        with pytest.raises(DamagedFolderError, match=f"{name} must be .* no link"):
            toy.run(run, longer, tokenizer=toy.toy_tokenizer())
    after = {path: path.stat().st_mtime_ns for path in (theirs, *theirs.rglob("*"))}
    assert before == after


def test_a_pipe_in_the_place_of_settings_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(DamagedFolderError, match="config.json must be .* no pipe"):
        toy.run(tmp_path, toy.toy_config(steps=4))
