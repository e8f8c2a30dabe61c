"""Kills a search at random updates, and compares how it ends with an undisturbed one.

    python -m tests.faults.tuning --trials 12 --kills 3

The search that was killed must end with as many trials, the same scores, and the same
weights of the best model.
"""

import argparse
import os
import random
import signal
import tempfile
from pathlib import Path

import keras

import keras_attnvariants as kav
from keras_attnvariants.training.state import to_arrays
from tests.forks import with_tensorflow
from tests.toy_runs import write_corpus
from tests.tuning.toy import toy_search

UPDATES = 6


class KillAtUpdate(keras.callbacks.Callback):
    """Kills this process after a number of updates of all trials together."""

    left = 0

    def on_train_batch_end(self, batch, logs=None):
        KillAtUpdate.left -= 1
        if KillAtUpdate.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def make(folder, trials):
    corpus = kav.data.load_corpus(folder, "xx", "yy", cache_dir=folder / "cache")
    return toy_search(corpus, folder / "search", max_trials=trials)


def run_until_killed(forks, folder, trials, update):
    """Runs the search in a process that must get killed."""
    counts = "--trials", trials, "--kill-at", update
    process = forks.start("tests.faults.tuning", "--child", folder, *counts)
    printed = "".join(process.communicate())
    assert process.returncode == -signal.SIGKILL, printed[-2000:]


def child(folder, trials, update):
    """The process that is killed."""
    from keras_attnvariants.training.training_loop import TrainingLoop

    KillAtUpdate.left = update
    run = TrainingLoop.run
    TrainingLoop.run = lambda self, given: run(
        self, [*given[:-1], KillAtUpdate(), given[-1]]
    )
    make(folder, trials).run()


def compare(killed, undisturbed):
    """Raises unless two results are equal."""
    ends = [
        {r.trial: (r.values, r.scores, r.updates) for r in result.records}
        for result in (killed, undisturbed)
    ]
    assert ends[0] == ends[1], ends
    weights = []
    for result in (killed, undisturbed):
        model = kav.training.load_run(result.run_folder()).model
        weights.append([array.tobytes() for array in to_arrays(model.weights)])
    assert weights[0] == weights[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=12, help="trials (12)")
    parser.add_argument("--kills", type=int, default=3, help="kills (3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the updates (1)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kill-at", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.trials, options.kill_at)
        return
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as other,
        with_tensorflow() as forks,
    ):
        folder = write_corpus(Path(first))
        draw = random.Random(options.seed)
        share = options.trials * UPDATES // (options.kills + 1)
        for number in range(options.kills):
            update = draw.randint(1, share)
            run_until_killed(forks, folder, options.trials, update)
            ended = len(make(folder, options.trials).result().records)
            print(f"Kill {number + 1} at update {update}: {ended} trials have ended.")
        killed = make(folder, options.trials).run()
        undisturbed = make(write_corpus(Path(other)), options.trials).run()
        compare(killed, undisturbed)
        best = killed.best()
        print(
            f"{options.kills} kills: {len(killed.records)} trials; the best, trial "
            f"{best.trial} with {best.score:.6g}, is that of an undisturbed search."
        )


if __name__ == "__main__":
    main()
