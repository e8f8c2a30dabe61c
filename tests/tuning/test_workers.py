"""Signs of life, and what becomes of workers and chiefs without them."""

import contextlib
import threading
import time

import pytest

from keras_attnvariants.tuning import TrialRecord
from keras_attnvariants.tuning import workers
from keras_attnvariants.tuning.chief import Watchdog
from keras_attnvariants.tuning.chief import free_address
from keras_attnvariants.tuning.chief import serving
from keras_attnvariants.tuning.workers import WorkerTuner
from keras_attnvariants.tuning.workers import heartbeat
from tests.tuning.test_oracles import make

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Oracle:
    """Knows who has which trial."""

    def __init__(self, folder, **trials):
        self.folder = folder
        self.ongoing_trials = trials
        self.tuner_ids = set(trials)
        self.gone = set()

    def give_back(self, name):
        self.gone.add(name)
        return self.ongoing_trials[name]


def test_only_silent_workers_lose_their_trials(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workers, "BEAT", 0.02)
    oracle = Oracle(tmp_path, alive="0", dead="1", never="2")
    watchdog = Watchdog(oracle, silence=0.5)
    with heartbeat(tmp_path, "alive"):
        with heartbeat(tmp_path, "dead"):
            watchdog.look()
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            watchdog.look()
            time.sleep(0.02)
    assert oracle.gone == {"dead", "never"}
    assert "Worker dead is gone; another continues trial 1" in capsys.readouterr().out


class Points:
    """Stands for what trains trials: its scores are the points."""

    objective = "loss"

    def __init__(self, *after):
        self.after = iter(after)

    def run(self, folder, values):
        next(self.after, lambda: None)()
        costs = {"tokens_per_second": 1.0, "memory_mib": 1.0, "minutes": 1.0}
        score = float(values["n"])
        return TrialRecord(folder.name, {}, (score,), 1, 1, **costs, best_seed=1)


def test_a_worker_goes_on_while_its_chief_is_started_again(tmp_path, capsys):
    """The chief ends in the first trial, and is back a little later."""
    address = free_address()
    again = make(tmp_path, trials=2)
    with contextlib.ExitStack() as second, contextlib.ExitStack() as first:
        first.enter_context(serving(make(tmp_path, trials=2), address))

        def restart():
            again.reload()
            second.enter_context(serving(again, address))

        def kill():
            first.close()
            threading.Timer(1.5, restart).start()

        folder = tmp_path / "search"
        WorkerTuner(make(tmp_path), Points(kill), folder, address, "a").search()
    ended = [(t.status, t.score) for t in again.trials.values()]
    points = [t.hyperparameters.values["n"] for t in again.trials.values()]
    assert ended == [("COMPLETED", point) for point in points] and len(points) == 2
    printed = capsys.readouterr().out
    assert f"The chief at {address} does not answer: waiting for it.\n" in printed
    assert again.has_ended


def test_a_second_chief_at_an_address_is_refused(tmp_path):
    address = free_address()
    with serving(make(tmp_path), address):
        with pytest.raises(OSError, match="must be a free address"):
            with serving(make(tmp_path), address):
                pass
