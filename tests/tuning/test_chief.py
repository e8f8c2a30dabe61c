"""Chiefs and their workers, alive and silent."""

import time

import pytest

from keras_attnvariants.tuning import workers
from keras_attnvariants.tuning.chief import Watchdog
from keras_attnvariants.tuning.chief import free_address
from keras_attnvariants.tuning.chief import local_workers
from keras_attnvariants.tuning.chief import serving
from keras_attnvariants.tuning.workers import heartbeat
from keras_attnvariants.utils.importing import import_named
from tests.tuning.test_oracles import make

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Oracle:
    """Knows which worker has which trial."""

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


def test_a_second_chief_at_an_address_is_refused(tmp_path):
    address = free_address()
    with serving(make(tmp_path), address):
        with pytest.raises(OSError, match="must be a free address"):
            with serving(make(tmp_path), address):
                pass


def test_a_worker_that_would_fail_again_is_not_started_again(capfd):
    """Its module is not there in any process."""
    with local_workers(import_named, "--import", 1) as look:
        with pytest.raises(ValueError, match="cannot begin, and would not if it were"):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                look()
                time.sleep(0.1)
    found = capfd.readouterr()
    assert found.err.count("`--import` cannot be imported: ModuleNotFoundError") == 1
    assert "started again" not in found.out
