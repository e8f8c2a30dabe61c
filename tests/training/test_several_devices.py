"""Training on several devices and in several processes equals training on one."""

import json
import os
import signal
import socket
import time

import keras
import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.training import LabelSmoothedCrossEntropy
from keras_attnvariants.training import TrainingState
from keras_attnvariants.training import several_devices
from tests.forks import with_jax
from tests.training import toy

ACCUMULATE = {"accumulate": 2, "ema": 0.9, "steps": 10}
# Rows that two groups of devices can and cannot divide; each number is traced anew.
BIG = {"model": "transformer", "fewest": 7, "changes": {"steps": 12}}
DIVIDED = {**BIG, "devices": 4, "model_parallel": 2}
QUARTERED = {**BIG, "devices": 4, "model_parallel": 4}
ALONE = [
    {"name": "one"},
    {"name": "two", "devices": 2},
    {"name": "three", "devices": 3},  # which do not divide the 8 rows of a batch
    {"name": "begun", "devices": 3, "changes": {"steps": 16}, "run": "moved"},
    {"name": "moved", "devices": 2, "run": "moved", "seed": 9},
    {"name": "one-more", "changes": ACCUMULATE},
    {"name": "three-more", "devices": 3, "changes": ACCUMULATE},
    {"name": "whole", **BIG},
    {"name": "divided", **DIVIDED},
    {**QUARTERED, "name": "half", "changes": {"steps": 8}, "run": "divided-pair"},
]


@pytest.fixture(scope="module")
def forks():
    with with_jax() as forks:
        yield forks


def start(forks, folder, trainings, devices=1, **together):
    """A process that trains on JAX, with this many devices to choose from."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    return forks.start(
        "tests.training.on_devices",
        folder,
        json.dumps(trainings),
        XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}",
        TOGETHER=json.dumps(together or None),
    )


def free_port():
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def start_together(forks, folder, trainings, processes=2, **options):
    """Processes that train together."""
    together = {"coordinator": f"127.0.0.1:{free_port()}", "processes": processes}
    given = [trainings] * processes if isinstance(trainings[0], dict) else trainings
    return [
        start(forks, folder, given[number], process=number, **together, **options)
        for number in range(processes)
    ]


def ends(processes, timeout=500):
    """Exit status and standard error of each."""
    errors = [process.communicate(timeout=timeout)[1] for process in processes]
    return [(p.returncode, error) for p, error in zip(processes, errors, strict=True)]


def last_state(run):
    """The number of the newest state of a training, 0 before the first."""
    names = (path.name for path in run.glob("state/state-*"))
    return max((int(name.removeprefix("state-")) for name in names), default=0)


def wait_for_state(run, number, processes):
    """Returns when a training has saved this many states."""
    while last_state(run) < number:
        assert all(process.poll() is None for process in processes), ends(processes)
        time.sleep(0.02)


def losses(folder, name):
    return [
        (record["event"], record["step"], record["loss"], record.get("val_loss"))
        for record in toy.log(folder / name)
        if "loss" in record
    ]


def weights(folder, name):
    with np.load(folder / f"{name}.npz") as arrays:
        return [arrays[str(index)] for index in range(len(arrays.files))]


def assert_equal(folder, first, second):
    """Losses and variables are equal up to rounding, seeds of dropout exactly."""
    for ours, theirs in zip(losses(folder, first), losses(folder, second), strict=True):
        assert ours[:2] == theirs[:2]
        assert ours[2:] == pytest.approx(theirs[2:], abs=1e-5, nan_ok=True)
    for ours, theirs in zip(
        weights(folder, first), weights(folder, second), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.fixture(scope="module")
def folder(forks, tmp_path_factory):
    """Trainings in a process with four devices."""
    folder = tmp_path_factory.mktemp("devices")
    succeed([start(forks, folder, ALONE, devices=4)])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "one"),
    [
        ("two", "one"),
        ("three", "one"),
        ("moved", "one"),
        ("three-more", "one-more"),
        ("divided", "whole"),
    ],
)
def test_devices_train_like_one(folder, name, one):
    """So do resumes on another number, and updates from several batches."""
    assert_equal(folder, name, one)


@pytest.mark.slow
def test_the_model_of_a_divided_training_is_whole(folder):
    saved = [load_model(folder / name / "averaged") for name in ("divided", "whole")]
    for ours, theirs in zip(*(model.weights for model, _ in saved), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.skipif(backend.name() == "jax", reason="they are for JAX")
def test_several_devices_need_jax():
    with pytest.raises(ValueError, match="KERAS_BACKEND=jax"), several_devices(2):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"devices": 0}, "`devices` must be a positive integer"),
        ({"coordinator": "here:1"}, "must be given together"),
        ({"processes": 2}, "must be given together"),
        ({"process": 1}, "`process` must be one of 0"),
        ({"coordinator": "here", "processes": 2}, "must be host:port"),
        ({"coordinator": "here:0", "processes": 2}, "must be host:port"),
        ({"wait": 0}, "`wait` must be a positive number"),
        ({"model_parallel": 0}, "`model_parallel` must be a positive integer"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message), several_devices(**options):
        pass


class TwoReplicas:
    num_replicas_in_sync = 2


@pytest.mark.skipif(backend.name() != "tensorflow", reason="a strategy of TensorFlow")
def test_replicas_of_tensorflow_are_refused(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.distribute, "get_strategy", TwoReplicas)
    loss = LabelSmoothedCrossEntropy()
    labels, logits = keras.ops.ones((1, 2), "int32"), keras.ops.zeros((1, 2, 4))
    with pytest.raises(ValueError, match="averages the mean losses of its replicas"):
        loss(labels, logits)
    LabelSmoothedCrossEntropy(reduction="sum")(labels, logits)


@pytest.fixture(scope="module")
def together(forks, folder):
    """Two processes with a device each; a resume on one of two devices."""
    succeed(start_together(forks, folder, [{"name": "pair"}]))
    return folder


def succeed(processes):
    for status, error in ends(processes):
        assert status == 0, error


@pytest.mark.slow
def test_processes_train_like_one(together):
    assert_equal(together, "pair", "one")


@pytest.mark.slow
def test_a_divided_training_goes_on_divided_otherwise_in_two_processes(forks, folder):
    resumed = {"name": "divided-pair", **BIG, "model_parallel": 2, "seed": 9}
    succeed(start_together(forks, folder, [resumed], devices=2))
    assert_equal(folder, "divided-pair", "whole")


@pytest.mark.slow
def test_different_settings_are_refused(forks, tmp_path):
    run, other = {"name": "run"}, {"name": "run", "changes": {"clipnorm": 2.0}}
    for status, error in ends(start_together(forks, tmp_path, [[run], [other]])):
        assert status == 2
        line = error.strip().splitlines()[-1]
        assert line.startswith("Error: process 1 has other settings")
        assert line.endswith("`clipnorm` 2 instead of 1")
    assert not list(tmp_path.glob("run/state/*"))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 1])
def test_a_signal_to_one_process_stops_all(forks, together, asked):
    """A callback that only process 0 has stops all as well; then the run resumes."""
    run = {
        "name": f"stopped-{asked}",
        "pause": 0.1,
        "stop": 6,
        "changes": {"steps": 25},
    }
    folder = together / run["name"]
    succeed(start_together(forks, together, [run]))
    assert TrainingState(folder / "state").load_latest().progress["step"] == 6
    run |= {"changes": {}, "stop": None, "seed": 9}
    processes = start_together(forks, together, [run])
    wait_for_state(folder, last_state(folder) + 2, processes)
    os.kill(processes[asked].pid, signal.SIGTERM)
    assert [status for status, _ in ends(processes)] == [143, 143]
    succeed(start_together(forks, together, [{**run, "pause": 0.0}]))
    assert toy.log(folder)[-1]["step"] == 26


@pytest.mark.slow
def test_a_limit_of_time_ends_all_processes(forks, together):
    run = {"name": "timed", "minutes": 0.05, "pause": 0.1, "changes": {"steps": 9999}}
    succeed(start_together(forks, together, [run]))
    *_, period, averaged = toy.log(together / "timed")
    assert (period["event"], averaged["event"]) == ("period", "averaged")
    latest = TrainingState(together / "timed/state").load_latest().progress
    assert latest["step"] == period["step"] < 9999 and latest["stopped"]


@pytest.mark.slow
def test_a_killed_process_ends_the_other_and_the_run_resumes(forks, together):
    """First one process is killed, then the other, later in the same training."""
    run = {"name": "killed", "pause": 0.1}
    folder = together / "killed"
    for victim in (1, 0):
        processes = start_together(forks, together, [run])
        wait_for_state(folder, last_state(folder) + 2, processes)
        processes[victim].kill()
        status, error = ends(processes, timeout=60)[1 - victim]
        # JAX aborts it, often before it can say anything itself.
        assert status in (2, -signal.SIGABRT), error
        assert "another task died" in error or "another process has ended" in error
        run["seed"] = 9
    succeed(start_together(forks, together, [{"name": "killed", "seed": 9}]))
    assert_equal(together, "killed", "one")


@pytest.mark.slow
def test_a_process_that_fails_ends_the_other(forks, tmp_path):
    (tmp_path / "run").write_text("no folder")
    first, other = ends(start_together(forks, tmp_path, [{"name": "run"}]), 100)
    assert "Error: " in first[1] and "run" in first[1]
    assert other[0] != 0 and "another task died" in other[1]


@pytest.mark.slow
def test_a_process_that_does_not_come(forks, tmp_path):
    place = {"coordinator": f"127.0.0.1:{free_port()}", "processes": 2, "wait": 1}
    process = start(forks, tmp_path, [{"name": "run"}], process=0, **place)
    output, error = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGABRT
    assert output == f"Process 0 waits for all 2 at {place['coordinator']}.\n"
    assert "DEADLINE_EXCEEDED" in error


@pytest.mark.slow
def test_another_number_of_processes_is_refused(forks, tmp_path):
    coordinator = f"127.0.0.1:{free_port()}"
    options = {"devices": 1, "coordinator": coordinator}
    processes = [
        start(forks, tmp_path, [{"name": "run"}], **options, process=i, processes=2 + i)
        for i in range(2)
    ]
    for status, error in ends(processes):
        assert status == 2
        assert "`processes` 3 instead of 2" in error


@pytest.mark.slow
def test_more_devices_than_there_are(forks, tmp_path):
    for options, message in (
        ({"devices": 3}, "`devices` must be at most 2"),
        ({"devices": 2, "model_parallel": 3}, "must divide the number of devices"),
    ):
        trainings = [{"name": "run", **options}]
        [(status, error)] = ends([start(forks, tmp_path, trainings, devices=2)])
        assert status == 2
        assert message in error.strip().splitlines()[-1]
