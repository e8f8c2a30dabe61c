"""Trains on 1, 2 and 4 devices and in 2 and 4 processes, and kills processes.

    python -m tests.faults.devices --updates 200

A small Transformer with dropout learns pairs of unequal lengths. Losses of every update
and final weights are compared with those of one device. Then each process in turn is
killed by signal 9 in the middle of a training; the others must end by themselves, and
the resumed training with the weights of an undisturbed one.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.training.test_devices import ends
from tests.training.test_devices import losses
from tests.training.test_devices import start
from tests.training.test_devices import start_team
from tests.training.test_devices import wait_for_state
from tests.training.test_devices import weights

# Seconds in which the others have to end after one was killed.
BOUND = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=200, help="of a training (200)")
    parser.add_argument("--processes", type=int, default=2, help="to kill (2)")
    options = parser.parse_args()
    changes = {
        "steps": options.updates,
        "log_every": 1,
        "validate_every": options.updates // 4,
        "save_every": max(options.updates // 10, 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        equal(Path(folder), changes)
        kill(Path(folder), changes, options.processes)


def training(name, changes, **options):
    return {"name": name, "changes": changes, "model": "transformer", **options}


def equal(folder, changes):
    """One process with 1, 2 and 4 devices, and 2 and 4 processes with one each."""
    names = {"one": None, "two": 2, "four": 4}
    trainings = [training(n, changes, devices=d) for n, d in names.items()]
    succeed([start(folder, trainings, devices=4)])
    for processes in (2, 4):
        name = f"{processes}-processes"
        succeed(start_team(folder, [training(name, changes)], processes))
        names[name] = None
    for name in list(names)[1:]:
        report(folder, name)


def kill(folder, changes, processes):
    """Kills each process in turn, in another part of the training."""
    for victim in range(processes):
        name = f"killed-{victim}"
        run = folder / name
        team = start_team(folder, [training(name, changes, pause=0.02)], processes)
        wait_for_state(run, 2 + 2 * victim, team)
        team[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        ended = ends(team, BOUND)
        seconds = time.monotonic() - killed
        for number, (status, error) in enumerate(ended):
            assert status != 0, (number, error)
            if number != victim:
                line = error.strip().splitlines()[-1:]
                print(f"{name}: process {number} exit {status}: {line}", flush=True)
        print(f"{name}: the others ended within {seconds:.1f} s", flush=True)
        succeed(start_team(folder, [training(name, changes, seed=9)], processes))
        report(folder, name)


def succeed(processes):
    for status, error in ends(processes, 500):
        assert status == 0, error


def report(folder, name):
    """Prints, and bounds, how far a training is from that on one device."""
    pairs = zip(losses(folder, name), losses(folder, "one"), strict=True)
    loss = max(abs(ours[2] - theirs[2]) for ours, theirs in pairs)
    pairs = zip(weights(folder, name), weights(folder, "one"), strict=True)
    weight = max(float(np.max(np.abs(ours - theirs))) for ours, theirs in pairs)
    print(f"{name}: losses differ by {loss:.1e}, variables by {weight:.1e}", flush=True)
    assert loss < 1e-5, name


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main())
