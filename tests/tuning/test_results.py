"""The table of trials, and its front."""

import csv
import dataclasses
import io
import re

import pytest
from rich.console import Console

from keras_attnvariants import presets
from keras_attnvariants import tuning
from keras_attnvariants.tuning import SearchResult
from keras_attnvariants.tuning import TrialRecord
from keras_attnvariants.tuning.results import read_result
from keras_attnvariants.utils.records import write_record


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
    assert "4 trials of 10 updates each" in printed(result)


def printed(result):
    """The table as a terminal of 80 columns shows it."""
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(result)
    return console.export_text()


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
    _, points = printed(both).split("values")
    assert points.split() == ["0", "encoder", "none", "1", "encoder", "LocalAttention"]
    one = SearchResult(tmp_path, tuple(records[:1]), "bleu", "10 updates")
    _, *words = printed(one).split("values")[1].split()
    assert words == ["encoder", "none", "warmup_steps", "500"]


def test_a_terminal_of_80_columns_shows_a_trial_in_a_few_lines(tmp_path):
    """With the attention of three places, one of them with an object as an option."""
    preset = presets.get("kav/hc-sa/multi30k")
    space = tuning.SearchSpace(attention={"encoder": "all"})
    [options] = (
        dimension.values
        for dimension in space.hyperparameters(preset).space
        if dimension.name == "encoder/PhraseAttention/options"
    )
    longest = max(options, key=len)
    values = {}
    for place in ("encoder", "decoder", "cross"):
        values |= {
            place: "PhraseAttention",
            f"{place}/PhraseAttention/options": longest,
        }
    found = dataclasses.replace(record("0", 31.4, 15_168_312), values=values)
    text = printed(SearchResult(tmp_path, (found,), "bleu", "10 updates"))
    assert "15,168,312" in text and "31.4 ± 1.4" in text
    assert len(text.split("values")[1].splitlines()) < 10
    assert text.count("PhraseAttention") == 3 and "module" not in text
    places = re.findall(r"(\w+) PhraseAttention", text)
    assert places == ["encoder", "decoder", "cross"] and '"' not in text
