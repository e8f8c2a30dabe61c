"""Toy trainings in child processes that are disturbed.

`python -m tests.faults.server FOLDER CHANGES COMMAND` trains in `FOLDER/run`, writes
its errors to `FOLDER/errors`, and at the end what it trained to `FOLDER/variables.npz`.
`CHANGES` are those of the toy's `TrainingConfig`, as JSON. The commands are

    start N       dies at the Nth stage of its start
    update N      dies after N updates
    validation N  dies after N batches of validation
    save N        dies while it writes byte N of its states and models
    average N     dies while it writes byte N after the averaging has begun
    terminate N   gets SIGTERM after N updates
    after S       is killed from outside after S seconds
    finish        is left alone

`Server` starts such processes.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import keras
import numpy as np

from keras_attnvariants.cli.commands import clear_errors
from keras_attnvariants.training import run_folder
from keras_attnvariants.training import several_devices
from keras_attnvariants.training.run_folder import RunFolder
from keras_attnvariants.training.training_loop import TrainingLoop
from tests.training import faults
from tests.training import toy

# A run of 60 updates and 8 validations. With this width its weights have 220 kB, and
# its folder some 3 MB.
STEPS = 60
WIDTH = 208

# Functions that a run calls in turn before its first update.
START = (
    (several_devices, "lock_folder"),
    (TrainingLoop, "_compile"),
    (RunFolder, "open"),
    (run_folder, "read_settings"),
    (run_folder, "write_file"),
    (RunFolder, "_restore"),
    (TrainingLoop, "run"),
)


class SendSignal(keras.callbacks.Callback):
    """Sends its own process a signal after some updates, or batches of validation."""

    def __init__(self, number, updates=0, tests=0):
        super().__init__()
        self.number = number
        self.updates = updates
        self.tests = tests

    def on_train_batch_end(self, batch, logs=None):
        self.updates -= 1
        if self.updates == 0:
            os.kill(os.getpid(), self.number)

    def on_test_batch_end(self, batch, logs=None):
        self.tests -= 1
        if self.tests == 0:
            os.kill(os.getpid(), self.number)


def before(owner, name, action):
    """Runs an action before every call of a function."""
    function = getattr(owner, name)

    def disturbed(*args, **kwargs):
        action()
        return function(*args, **kwargs)

    setattr(owner, name, disturbed)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def disturb(command, value):
    """Prepares the disturbance; returns the callbacks that it needs."""
    if command == "start":
        before(*START[int(value)], die)
    elif command == "save":
        faults.die_after(int(value))
    elif command == "average":
        before(RunFolder, "averages", lambda: faults.die_after(int(value)))
    elif command == "update":
        return [SendSignal(signal.SIGKILL, updates=int(value))]
    elif command == "validation":
        return [SendSignal(signal.SIGKILL, tests=int(value))]
    elif command == "terminate":
        return [SendSignal(signal.SIGTERM, updates=int(value))]
    return []


def train(folder, changes, command, value):
    """One run, as the command line reports it."""
    callbacks = disturb(command, value)
    run_dir = folder / "run"
    # Weights and dropout of a run that has a state must come from there.
    model = toy.toy_model(99 if any(run_dir.glob("state/state-*")) else 1, width=WIDTH)
    with clear_errors():
        config = toy.toy_config(steps=STEPS, **changes)
        toy.run(run_dir, config, model, callbacks=callbacks)
    arrays = {str(index): array for index, array in enumerate(toy.variables(model))}
    np.savez(folder / "variables.npz", **arrays)


def child(folder, changes, command, value):
    """Never returns."""
    errors = os.open(folder / "errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(errors, 2)
    # It matters only in a power cut, and a busy disk makes it slow.
    os.fsync = lambda descriptor: None
    status = 1
    try:
        train(folder, changes, command, value)
        status = 0
    except SystemExit as exit_:
        status = exit_.code
    except BaseException as error:
        status = getattr(error, "exit_code", 1)
        if status == 1:
            print(repr(error), file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Server:
    """Starts trainings in a folder, one after the other, and returns how they ended."""

    def __init__(self, forks, folder, **changes):
        self.folder = Path(folder)
        self._forks = forks
        self._changes = json.dumps(changes)

    def __call__(self, command):
        """The exit status (negative: the signal that ended it)."""
        kind, value = [*command.split(), "0"][:2]
        process = self._forks.start(
            "tests.faults.server", self.folder, self._changes, kind, value
        )
        if kind == "after":
            time.sleep(float(value))
            process.kill()
        return process.wait()


class End:
    """The end of a run: its variables, its log without times, its models."""

    def __init__(self, folder):
        run_dir = folder / "run"
        with np.load(folder / "variables.npz") as arrays:
            self.variables = [arrays[str(index)] for index in range(len(arrays.files))]
        self.log = without_times(run_dir)
        self.models = [
            (run_dir / name / "model.weights.h5").read_bytes()
            for name in ("best", "averaged")
        ]
        self.leftovers = [*run_dir.rglob("tmp-*"), *run_dir.glob("lock.json")]

    def check(self, undisturbed):
        """Raises unless a disturbed run ended like this undisturbed one."""
        assert toy.same(self.variables, undisturbed.variables), "other weights"
        assert self.log == undisturbed.log, "another log"
        assert self.models == undisturbed.models, "other models"
        assert not self.leftovers, self.leftovers


def without_times(run_dir):
    """The log without the entries that depend on the clock."""
    times = ("seconds", "tokens_per_second")
    return [
        {key: value for key, value in record.items() if key not in times}
        for record in toy.log(run_dir)
    ]


if __name__ == "__main__":
    child(Path(sys.argv[1]), json.loads(sys.argv[2]), *sys.argv[3:])
