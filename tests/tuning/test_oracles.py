"""Oracles that lose no trial: after a kill, a lost worker, and failures."""

import json
import threading

import pytest

from keras_attnvariants.tuning import oracles

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def make(folder, kind="RandomOracle", trials=4, **options):
    from keras_tuner import HyperParameters
    from keras_tuner import Objective
    from keras_tuner.engine.base_tuner import BaseTuner

    space = HyperParameters()
    space.Choice("n", [1, 2, 3, 4, 5])
    oracle = getattr(oracles, kind)(
        folder=folder / "search",
        objective=Objective("val_loss", "min"),
        hyperparameters=space,
        allow_new_entries=False,
        seed=3,
        max_trials=trials,
        **options,
    )
    BaseTuner(oracle, directory=folder, project_name="search")
    return oracle


def end(oracle, trial, status="COMPLETED"):
    if status == "COMPLETED":
        score = {"val_loss": float(trial.hyperparameters.values["n"])}
        oracle.update_trial(trial.trial_id, score)
    trial.status = status
    oracle.end_trial(trial)


def points(oracle):
    return [t.hyperparameters.values["n"] for t in oracle.trials.values()]


def test_a_random_search_finds_every_point_of_a_space(tmp_path):
    oracle = make(tmp_path, trials=9)
    while (trial := oracle.create_trial("a")).status != "STOPPED":
        end(oracle, trial)
    assert sorted(points(oracle)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["RandomOracle", "BayesianOracle"])
def test_a_search_killed_after_each_trial_proposes_the_same_points(tmp_path, kind):
    options = {"num_initial_points": 3} if kind == "BayesianOracle" else {}
    (tmp_path / "whole").mkdir()
    whole = make(tmp_path / "whole", kind, **options)
    for _ in range(4):
        end(whole, whole.create_trial("a"))
    for _ in range(4):
        killed = make(tmp_path, kind, **options)
        killed.reload()
        end(killed, killed.create_trial("a"))
    assert points(killed) == points(whole)


def test_the_trial_of_a_killed_search_is_run_again(tmp_path):
    first = make(tmp_path).create_trial("a")
    again = make(tmp_path)
    again.reload()
    trial = again.create_trial("a")
    assert trial.trial_id == first.trial_id
    assert trial.hyperparameters.values == first.hyperparameters.values


def test_a_kill_between_the_files_of_a_trial_and_of_the_oracle(tmp_path):
    oracle = make(tmp_path)
    end(oracle, oracle.create_trial("a"))
    before = (tmp_path / "search/oracle.json").read_bytes()
    lost = oracle.create_trial("a")
    (tmp_path / "search/oracle.json").write_bytes(before)
    again = make(tmp_path)
    again.reload()
    assert list(again.trials) == ["0"]
    trial = again.create_trial("a")
    assert trial.hyperparameters.values == lost.hyperparameters.values


def test_a_trial_that_has_ended_is_not_run_again(tmp_path):
    oracle = make(tmp_path)
    end(oracle, oracle.create_trial("a"))
    path = tmp_path / "search/oracle.json"
    assert json.loads(path.read_text())["ongoing_trials"] == {}
    state = json.loads(path.read_text())
    path.write_text(json.dumps({**state, "ongoing_trials": {"a": "0"}}))
    again = make(tmp_path)
    again.reload()
    assert again.create_trial("a").trial_id == "1"


def test_another_worker_continues_the_trial_of_one_that_is_gone(tmp_path):
    oracle = make(tmp_path, trials=1)
    lost = oracle.create_trial("a")
    # There is no other trial, but this one may come back.
    assert oracle.create_trial("b").status == "IDLE"
    assert oracle.give_back("a") == lost.trial_id
    trial = oracle.create_trial("b")
    assert oracle.give_back("a") is None
    assert trial.trial_id == lost.trial_id
    end(oracle, trial)
    assert oracle.create_trial("b").status == "STOPPED"


def test_a_trial_that_is_reported_twice_ends_once(tmp_path):
    oracle = make(tmp_path)
    trial = oracle.create_trial("a")
    end(oracle, trial)
    end(oracle, trial)
    assert oracle.end_order == [trial.trial_id]


def test_a_restarted_chief_leaves_workers_their_trials(tmp_path):
    lost = make(tmp_path).create_trial("a")
    chief = make(tmp_path)
    chief.reload()
    assert chief.create_trial("b").trial_id != lost.trial_id
    assert chief.create_trial("a").trial_id == lost.trial_id


def test_a_chief_ends_when_all_workers_know_that_nothing_is_left(tmp_path):
    oracle = make(tmp_path, trials=1)
    trial = oracle.create_trial("a")
    assert oracle.create_trial("b").status == "IDLE"
    end(oracle, trial)
    assert oracle.create_trial("a").status == "STOPPED" and not oracle.has_ended
    assert oracle.create_trial("b").status == "STOPPED" and oracle.has_ended


def test_the_limit_of_failures_ends_the_search(tmp_path):
    oracle = make(tmp_path, max_consecutive_failed_trials=2)
    end(oracle, oracle.create_trial("a"), "FAILED")
    end(oracle, oracle.create_trial("a"), "FAILED")
    assert isinstance(oracle.failure, ValueError)
    assert "2 trials in a row" in str(oracle.failure)
    assert oracle.create_trial("a").status == "STOPPED"


def test_no_error_keeps_other_workers_waiting(tmp_path, monkeypatch):
    """keras-tuner would never open its lock again."""

    def full(*_):
        raise OSError("No space left on device")

    oracle = make(tmp_path)
    monkeypatch.setattr(oracles, "replace_file", full)
    oracle.create_trial("a")
    found = []
    other = threading.Thread(target=lambda: found.append(oracle.create_trial("b")))
    other.start()
    other.join(timeout=20)
    assert [trial.status for trial in found] == ["STOPPED"]
    assert "No space" in str(oracle.failure)


def test_workers_are_sent_no_conditions(tmp_path, capsys):
    """keras-tuner prints each of them."""
    oracle = make(tmp_path)
    with oracle.hyperparameters.conditional_scope("n", [1, 2, 3, 4, 5]):
        oracle.hyperparameters.Choice("m", ["x", "y"])
    trial = oracle.create_trial("a")
    trial.to_proto()
    oracle.get_trial(trial.trial_id).to_proto()
    oracle.update_trial(trial.trial_id, {"val_loss": 0.0}).to_proto()
    assert capsys.readouterr().out == ""
    trial.status = "COMPLETED"
    oracle.end_trial(trial)
    assert len(oracle.trials["0"].hyperparameters.space) == 2
