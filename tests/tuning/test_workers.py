"""Signs of life, and what becomes of workers without them."""

import time

from keras_attnvariants.tuning import workers
from keras_attnvariants.tuning.chief import Watchdog
from keras_attnvariants.tuning.workers import Heartbeat


class Oracle:
    """Knows who has which trial."""

    def __init__(self, **trials):
        self.ongoing_trials = trials
        self.tuner_ids = set(trials)

    def give_back(self, name):
        self.tuner_ids.discard(name)
        return self.ongoing_trials.pop(name, None)


def test_only_silent_workers_lose_their_trials(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workers, "BEAT", 0.02)
    oracle = Oracle(alive="0", dead="1", never="2")
    watchdog = Watchdog(oracle, tmp_path, silence=0.5)
    dead = []
    with Heartbeat(tmp_path, "alive"):
        with Heartbeat(tmp_path, "dead"):
            watchdog.look()
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            dead += watchdog.look()
            time.sleep(0.02)
    assert sorted(dead) == ["dead", "never"]
    assert oracle.ongoing_trials == {"alive": "0"}
    assert "Worker dead is gone; another continues trial 1" in capsys.readouterr().out


def test_names_are_set_for_keras_tuner_and_taken_back(monkeypatch):
    import os

    monkeypatch.delenv("KERASTUNER_TUNER_ID", raising=False)
    with workers.keras_tuner_names("127.0.0.1:99", "first"):
        assert os.environ["KERASTUNER_ORACLE_PORT"] == "99"
        assert os.environ["KERASTUNER_TUNER_ID"] == "first"
    assert "KERASTUNER_TUNER_ID" not in os.environ
