"""Oracles that lose no trial: after a kill, a lost worker, and failures."""

import json

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def make(folder, kind="RandomOracle", trials=4, **options):
    from keras_tuner import HyperParameters
    from keras_tuner import Objective

    from keras_attnvariants.tuning import oracles

    space = HyperParameters()
    space.Choice("n", [1, 2, 3, 4, 5])
    oracle = getattr(oracles, kind)(
        objective=Objective("val_loss", "min"),
        hyperparameters=space,
        allow_new_entries=False,
        seed=3,
        max_trials=trials,
        **options,
    )
    oracle._set_project_dir(folder, "search")
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
        if (tmp_path / "search/oracle.json").exists():
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
    # There is no other trial, but there may be this one.
    assert oracle.create_trial("b").status == "IDLE"
    assert oracle.give_back("a") == lost.trial_id
    assert oracle.give_back("a") is None
    trial = oracle.create_trial("b")
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
    chief.keeps_ongoing = True
    chief.reload()
    assert chief.create_trial("b").trial_id != lost.trial_id
    assert chief.create_trial("a").trial_id == lost.trial_id


def test_at_the_limit_of_failures_the_lock_is_free(tmp_path):
    from keras_tuner.src.engine.oracle import LOCKS

    from keras_attnvariants.tuning.oracles import SearchFailedError

    oracle = make(tmp_path, max_consecutive_failed_trials=2)
    end(oracle, oracle.create_trial("a"), "FAILED")
    trial = oracle.create_trial("a")
    with pytest.raises(SearchFailedError, match="2 trials in a row"):
        end(oracle, trial, "FAILED")
    assert not LOCKS[oracle].locked() and oracle.failure is not None
