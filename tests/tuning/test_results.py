"""The table of trials, and its front."""

import csv
import dataclasses

import pytest

from keras_attnvariants.tuning import SearchResult
from keras_attnvariants.tuning import TrialRecord
from keras_attnvariants.tuning.results import read_result
from keras_attnvariants.utils.files import write_record


def record(trial, score, parameters, speed=100.0):
    values = {"encoder": "LocalAttention", "encoder/LocalAttention/n": 3}
    scores = (score - 1, score + 1)
    return TrialRecord(
        trial, values, scores, 10, parameters, speed, 900.0, 1.5, best_seed=2
    )


@pytest.fixture
def result(tmp_path):
    records = [
        record("0", 5.0, 300),
        record("1", 4.0, 400, 200.0),
        record("2", 3.0, 100),
        record("3", 2.0, 100, 300.0),
    ]
    return SearchResult(tmp_path, tuple(records), "bleu", "10 updates")


def test_the_front_has_what_nothing_beats_at_its_cost(result):
    assert [r.trial for r in result.front()] == ["0", "2"]
    assert [r.trial for r in result.front("tokens_per_second")] == ["0", "1", "3"]


def test_the_best_under_a_bound(result):
    assert result.best().trial == "0"
    assert result.best(parameters=200).trial == "2"
    assert result.best(tokens_per_second=150).trial == "1"
    with pytest.raises(ValueError, match="within these bounds"):
        result.best(parameters=99)


def test_records_are_read_as_written_and_listed(result, tmp_path):
    first = result.records[0]
    (tmp_path / "trial_0").mkdir()
    write_record(tmp_path / "trial_0/record.json", first)
    assert read_result(tmp_path, "bleu", "10 updates").records == (first,)
    assert first.score == 5 and first.spread == pytest.approx(2**0.5)
    assert result.run_folder() == tmp_path / "trial_0/seed-2"
    result.to_csv(tmp_path / "trials.csv")
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert rows[0]["bleu"] == "5.0" and rows[0]["encoder/LocalAttention/n"] == "3"
    assert result.__rich__().row_count == 4


def test_the_table_shows_what_tells_the_trials_apart(tmp_path):
    """`warmup_steps` is the same in all."""
    records = [
        dataclasses.replace(record(str(n), 5.0 - n, 300), values=values)
        for n, values in enumerate(
            [
                {"encoder": "none", "warmup_steps": 500},
                {"encoder": "LocalAttention", "warmup_steps": 500},
            ]
        )
    ]
    both = SearchResult(tmp_path, tuple(records), "bleu", "10 updates")
    assert list(both.__rich__().columns[-1].cells) == [
        "encoder none",
        "encoder LocalAttention",
    ]
    one = SearchResult(tmp_path, tuple(records[:1]), "bleu", "10 updates")
    [shown] = one.__rich__().columns[-1].cells
    assert shown == "encoder none, warmup_steps 500"
