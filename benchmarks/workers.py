"""Trials per hour of a search with one worker, and with two.

    python -m benchmarks.workers --trials 12 --seconds 14

A first trial determines how many updates take this long. Both searches have the same
trials. One worker is this process; two are processes that share the cores of the
machine. "With start" counts from the call to its end, "under way" from the beginning of
the first trial to the end of the last, as in a long search. CPU is the number of cores
that a search kept busy: if one worker already uses both, a second one gains little.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import keras_attnvariants as kav
from keras_attnvariants.training.progress import read_log
from tests.toy_runs import write_corpus
from tests.tuning.toy import toy_preset


class Measured(NamedTuple):
    """Seconds of a search, from its call and from its first trial, and CPU seconds."""

    with_start: float
    under_way: float
    cpu: float


def make(corpus: kav.data.Corpus, folder: Path, trials: int, updates: int, width: int):
    """A search over learning rates, so that all trials take equally long."""
    preset = toy_preset(hidden_dim=width, intermediate_dim=2 * width, num_layers=2)
    rates = kav.tuning.Range(1e-3, 1e-1, log=True)
    return kav.tuning.search(
        preset,
        corpus,
        kav.tuning.SearchSpace(training={"learning_rate": rates}),
        folder,
        budget=kav.tuning.Budget(updates=updates, validations=1),
        max_trials=trials,
        precision="float32",
        settings={"log_every": 50},
    )


def measure(search: kav.tuning.Search, workers: int) -> Measured:
    """Runs a search with `workers` workers, and measures it."""
    start, cpu = time.time(), cpu_seconds()
    search.run(workers)
    end = time.time()
    # The first file of a run, and the last of a trial.
    vocabularies = search.folder.glob("trial_*/seed-1/tokenizer.model")
    begun = min(path.stat().st_mtime for path in vocabularies)
    records = search.folder.glob("trial_*/record.json")
    ended = max(path.stat().st_mtime for path in records)
    return Measured(end - start, ended - begun, cpu_seconds() - cpu)


def updates_in(
    seconds: float, corpus: kav.data.Corpus, folder: Path, width: int
) -> int:
    """The number of updates in this many seconds, from a trial of 200 here."""
    start = time.time()
    result = make(corpus, folder, 1, 200, width).run()
    whole = time.time() - start
    log = read_log(result.run_folder() / "log.jsonl")
    events = [event for event in log if event["event"] == "updates"]
    first, last = events[0], events[-1]
    update = (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])
    return max(20, round((seconds - whole) / update) + 200)


def cpu_seconds() -> float:
    """CPU seconds of this process, and of all child processes that have ended."""
    own, children = map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=12, help="trials (12)")
    parser.add_argument(
        "--seconds", type=float, default=14, help="length of a trial (14)"
    )
    parser.add_argument("--width", type=int, default=32, help="width of the model (32)")
    options = parser.parse_args()
    measured = {}
    with tempfile.TemporaryDirectory() as name:
        folder = write_corpus(Path(name))
        corpus = kav.data.load_corpus(folder, "xx", "yy", cache_dir=folder / "cache")
        where = (corpus, folder / "before", options.width)
        updates = updates_in(options.seconds, *where)
        cores = len(os.sched_getaffinity(0))
        print(f"{options.trials} trials of {updates} updates, {cores} cores")
        for workers in (1, 2):
            sizes = (options.trials, updates, options.width)
            search = make(corpus, folder / f"search-{workers}", *sizes)
            found = measured[workers] = measure(search, workers)
            print(
                f"{workers} worker(s): {3600 * options.trials / found.with_start:.0f} "
                f"trials/hour with start, "
                f"{3600 * options.trials / found.under_way:.0f} under way; "
                f"{found.with_start:.0f} s, CPU {found.cpu / found.with_start:.2f}"
            )
    for field in ("with_start", "under_way"):
        one, two = (getattr(measured[n], field) for n in (1, 2))
        print(f"Two workers over one, {field.replace('_', ' ')}: {one / two:.2f}")


if __name__ == "__main__":
    main()
