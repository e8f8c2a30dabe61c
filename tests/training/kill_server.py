"""Runs toy trainings in child processes that are killed; the parent only imports.

Usage: python -m tests.training.kill_server FOLDER. It says `ready` when it has
imported, takes one command a line on standard input, and answers each with the exit
status of the child (negative: the signal that ended it). Commands:

    step N        dies after N updates
    terminate N   gets SIGTERM after N updates
    byte N        dies while it writes byte N of its states and checkpoints
    after S       is killed from outside after S seconds
    finish        is left alone
"""

import os
import signal
import sys
import time
from pathlib import Path

import keras
import numpy as np

from tests.training import faults
from tests.training import toy

SIGNALS = {"step": signal.SIGKILL, "terminate": signal.SIGTERM}


class SendSignal(keras.callbacks.Callback):
    """Sends the own process a signal after so many updates."""

    def __init__(self, number, updates):
        super().__init__()
        self.number = number
        self.left = updates

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)


def child(folder, command, value):
    """One run; what training changed goes to `variables.npz` at the end."""
    callbacks = []
    if command in SIGNALS:
        callbacks.append(SendSignal(SIGNALS[command], int(value)))
    if command == "byte":
        faults.die_after(int(value))
    seed = 99 if any(folder.glob("state/state-*")) else 1
    config = toy.toy_config(steps=60)
    model, _ = toy.run(folder, config, toy.toy_model(seed), callbacks=callbacks)
    arrays = {str(index): array for index, array in enumerate(toy.variables(model))}
    np.savez(folder / "variables.npz", **arrays)


def serve(folder, command, value):
    """Fork a child, disturb it as told, and return how it ended."""
    pid = os.fork()
    if pid == 0:
        try:
            child(folder, command, value)
        except SystemExit as exit_:
            os._exit(exit_.code)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if command == "after":
        time.sleep(float(value))
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        words = [*line.split(), "0"]
        print("exit", serve(Path(sys.argv[1]), *words[:2]), flush=True)
