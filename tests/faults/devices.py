"""Trains on 1, 2 and 4 devices and in 2 and 4 processes, and kills processes.

    python -m tests.faults.devices --updates 200

A small Transformer with dropout learns pairs of unequal lengths. Losses of every update
and final weights are compared with those of one device. Then each process in turn is
killed by signal 9 in the middle of a training; the others must end by themselves, and
the resumed training must end with the weights of an undisturbed one, bit by bit.
Takes some ten minutes.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

# Before the tests import TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from tests.forks import with_jax
from tests.training.test_several_devices import ends
from tests.training.test_several_devices import losses
from tests.training.test_several_devices import start
from tests.training.test_several_devices import start_together
from tests.training.test_several_devices import wait_for_state
from tests.training.test_several_devices import weights
from tests.training.toy import same

# Seconds within which the others have to end after one was killed.
BOUND = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=200, help="updates (200)")
    parser.add_argument("--processes", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    changes = {
        "steps": options.updates,
        "log_every": 1,
        "validate_every": options.updates // 4,
        "save_every": max(options.updates // 10, 1),
    }
    with tempfile.TemporaryDirectory() as folder, with_jax() as forks:
        equal(forks, Path(folder), changes, options.processes)
        kill(forks, Path(folder), changes, options.processes)


def training(name, changes, **options):
    return {"name": name, "changes": changes, "model": "transformer", **options}


def equal(forks, folder, changes, killed):
    """One process with 1, 2 and 4 devices, whole and divided; processes with one."""
    devices = {"one": None, "two": 2, "four": 4}
    trainings = [training(n, changes, devices=d) for n, d in devices.items()]
    divided = training("divided", changes, devices=4, model_parallel=2)
    succeed([start(forks, folder, [*trainings, divided], devices=4)])
    names = ["two", "four", "divided"]
    for processes in sorted({2, killed, 4}):
        names.append(f"{processes}-processes")
        succeed(
            start_together(forks, folder, [training(names[-1], changes)], processes)
        )
    first, *_, last = [loss for event, _, loss, _ in losses(folder, "one")]
    print(f"one: loss {first:.3f} at the first update, {last:.3f} in the last period")
    for name in names:
        report(folder, name)


def kill(forks, folder, changes, processes):
    """Kills each process in turn, in another part of the training."""
    for victim in range(processes):
        name = f"killed-{victim}"
        paused = training(name, changes, pause=0.02)
        together = start_together(forks, folder, [paused], processes)
        wait_for_state(folder / name, 2 + 2 * victim, together)
        together[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        ended = ends(together, BOUND)
        seconds = time.monotonic() - killed
        del ended[victim]
        for status, error in ended:
            assert status in (2, -signal.SIGABRT), error
        print(f"{name}: the others ended within {seconds:.1f} s", flush=True)
        succeed(
            start_together(forks, folder, [training(name, changes, seed=9)], processes)
        )
        report(folder, name)
        undisturbed = weights(folder, f"{processes}-processes")
        assert same(weights(folder, name), undisturbed), name
        print(f"{name}: resumed to the variables of an undisturbed run, bit by bit")


def succeed(processes):
    for status, error in ends(processes, 900):
        assert status == 0, error


def report(folder, name):
    """Prints, and bounds, how far a training is from that on one device."""
    pairs = list(zip(losses(folder, name), losses(folder, "one"), strict=True))
    loss = max(abs(ours[2] - theirs[2]) for ours, theirs in pairs)
    arrays = zip(weights(folder, name), weights(folder, "one"), strict=True)
    weight = max(float(np.max(np.abs(ours - theirs))) for ours, theirs in arrays)
    print(
        f"{name}: {len(pairs)} losses differ by at most {loss:.1e}, "
        f"variables by {weight:.1e}",
        flush=True,
    )
    assert loss < 1e-5, name
    assert weight < 2e-4, name


if __name__ == "__main__":
    main()
