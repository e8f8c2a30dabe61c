"""Oracles that processes share: no trial is lost after a kill and failures."""

import pytest

from keras_attnvariants.tuning import oracles

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def make(folder, kind="RandomOracle", trials=4, **options):
    from keras_tuner import HyperParameters
    from keras_tuner import Objective

    space = HyperParameters()
    space.Choice("n", [1, 2, 3, 4, 5])
    return getattr(oracles, kind)(
        folder=folder / "search",
        objective=Objective("val_loss", "min"),
        hyperparameters=space,
        allow_new_entries=False,
        seed=3,
        max_trials=trials,
        **options,
    )


def end(oracle, trial, status="COMPLETED"):
    trial.status = status
    score = float(trial.hyperparameters.values["n"])
    oracle.end_trial(trial, score if status == "COMPLETED" else None)


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
        end(killed, killed.create_trial("a"))
    assert points(killed) == points(whole)


def test_processes_share_the_trials(tmp_path):
    first, second = make(tmp_path, trials=3), make(tmp_path, trials=3)
    trials = [
        oracle.create_trial(name) for oracle, name in ((first, "a"), (second, "b"))
    ]
    assert [trial.trial_id for trial in trials] == ["0", "1"]
    end(first, trials[0])
    last = first.create_trial("a")
    assert last.trial_id == "2"
    end(second, trials[1])
    # There is no other trial, but this one may be left.
    assert second.create_trial("b").status == "IDLE"
    end(first, last)
    assert first.create_trial("a").status == "STOPPED"
    assert second.create_trial("b").status == "STOPPED"
    assert len(set(points(second))) == 3


@pytest.mark.parametrize("name", ["a", "b"])
def test_the_trial_of_a_process_that_has_ended_is_continued(tmp_path, capsys, name):
    first = make(tmp_path)
    lost = first.create_trial("a")
    first.leave_trial()
    # An oracle holds the lock of its trial as long as it exists.
    second = make(tmp_path)
    trial = second.create_trial(name)
    assert trial.trial_id == lost.trial_id == "0"
    assert trial.hyperparameters.values == lost.hyperparameters.values
    assert capsys.readouterr().out == "Trial 0 is continued.\n"
    assert make(tmp_path).create_trial("c").trial_id == "1"


def test_a_trial_that_failed_is_run_again_by_one_process(tmp_path):
    first, second = (make(tmp_path, max_retries_per_trial=1) for _ in range(2))
    end(first, first.create_trial("a"), "INVALID")
    again = first.create_trial("a")
    assert again.trial_id == "0"
    assert second.create_trial("b").trial_id == "1"
    end(first, again)
    assert first.trials["0"].status == "COMPLETED"


def test_a_kill_between_the_files_of_a_trial_and_of_the_oracle(tmp_path):
    oracle = make(tmp_path)
    end(oracle, oracle.create_trial("a"))
    before = (tmp_path / "search/oracle.json").read_bytes()
    lost = oracle.create_trial("a")
    oracle.leave_trial()
    (tmp_path / "search/oracle.json").write_bytes(before)
    again = make(tmp_path)
    trial = again.create_trial("a")
    assert list(again.trials) == ["0", "1"]
    assert trial.hyperparameters.values == lost.hyperparameters.values


def test_a_trial_that_is_reported_twice_ends_once(tmp_path):
    oracle = make(tmp_path)
    trial = oracle.create_trial("a")
    end(oracle, trial)
    end(oracle, trial)
    assert oracle.end_order == [trial.trial_id]


def test_the_limit_of_failures_ends_the_search_in_every_process(tmp_path):
    oracle = make(tmp_path, max_consecutive_failed_trials=2)
    end(oracle, oracle.create_trial("a"), "FAILED")
    for _ in range(2):
        trial = oracle.create_trial("a")
        assert trial.trial_id == "1"
        with pytest.raises(ValueError, match="2 trials in a row failed; their errors"):
            end(oracle, trial, "FAILED")
        oracle.leave_trial()
        oracle = make(tmp_path, max_consecutive_failed_trials=2)


def test_no_error_keeps_other_processes_waiting(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(oracles, "replace_file", full)
        oracle = make(tmp_path)
        with pytest.raises(OSError, match="No space"):
            oracle.create_trial("a")
        oracle.leave_trial()
    assert make(tmp_path).create_trial("b").trial_id == "0"
