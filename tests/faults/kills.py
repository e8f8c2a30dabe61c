"""Kills trainings at random moments, and compares how they end with an undisturbed one.

    python -m tests.faults.kills --count 100 --changes '{"accumulate": 3, "ema": 0.9}'

The kills take turns at the start, an update, a validation, a save and the averaging.
After every five the run is finished, and its weights, its log and its models must be
equal to those of a run that was never killed.
"""

import argparse
import json
import random
import shutil
import tempfile
from pathlib import Path

from tests.faults.server import START
from tests.faults.server import STEPS
from tests.faults.server import End
from tests.faults.server import Server
from tests.forks import with_tensorflow

# In 60 updates there are 8 validations of 3 batches, and some 30 saves of 650 kB.
MOMENTS = {
    "start": lambda draw: draw.randrange(len(START)),
    "update": lambda draw: draw.randint(1, STEPS // 3),
    "validation": lambda draw: draw.randint(1, 9),
    "save": lambda draw: draw.randint(0, 3_000_000),
    "average": lambda draw: draw.randint(0, 220_000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="kills (100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments (1)")
    parser.add_argument("--changes", default="{}", help="changed settings, as JSON")
    options = parser.parse_args()
    changes = json.loads(options.changes)
    with tempfile.TemporaryDirectory() as folder, with_tensorflow() as forks:
        server = Server(forks, folder, **changes)
        kill(server, finished(server), options.count, random.Random(options.seed))


def kill(server, undisturbed, count, draw):
    """Kills a number of times; prints each kill and raises at the first difference."""
    kinds, done = list(MOMENTS), 0
    while done < count:
        kind = kinds[done % len(kinds)]
        moment = MOMENTS[kind](draw)
        status = server(f"{kind} {moment}")
        print(f"{done + 1:4}  {kind:<10} {moment:>9}  exit {status}", flush=True)
        if status == 0:  # it was done before it could be killed
            check(server, undisturbed)
            continue
        assert status == -9, (server.folder / "errors").read_text()
        done += 1
        if done % len(kinds) == 0:
            assert server("finish") == 0, (server.folder / "errors").read_text()
            check(server, undisturbed)
    print(f"{done} kills: every run that was finished equals the undisturbed one.")


def finished(server):
    """The end of an undisturbed run."""
    assert server("finish") == 0, (server.folder / "errors").read_text()
    end = End(server.folder)
    shutil.rmtree(server.folder / "run")
    return end


def check(server, undisturbed):
    """Compares, and makes room for another run."""
    End(server.folder).check(undisturbed)
    shutil.rmtree(server.folder / "run")
    Path(server.folder / "variables.npz").unlink()


if __name__ == "__main__":
    main()
