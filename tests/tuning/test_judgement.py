"""Judgements on hybrids with known scores."""

import csv

import pytest

from keras_attnvariants.tuning import SearchResult
from keras_attnvariants.tuning import TrialRecord
from keras_attnvariants.tuning import judge


def record(name, *scores, parameters=100):
    costs = (10, parameters, 100.0, 900.0, 1.5)
    return TrialRecord(name, {"hybrid": name}, scores, *costs, best_seed=1)


def result(tmp_path, *records, objective="loss"):
    return SearchResult(tmp_path, records, objective, "10 updates")


def test_a_hybrid_within_the_tolerance_is_confirmed(tmp_path):
    cheap, fair = record("hard-coded", 4.2, parameters=80), record("local", 4.03)
    found = judge(result(tmp_path, cheap, record("learned", 4.0), fair))
    assert [(r.hybrid, r.saved, r.verdict) for r in found.rows] == [
        ("hard-coded", 20, "refuted"),
        ("local", 0, "confirmed"),
        ("learned", 0, "baseline"),
    ]
    assert found.rows[0].worse == pytest.approx(0.05)
    assert found.sentence.startswith("Confirmed: a hybrid is at most 1% worse")
    assert "saves no parameters: `local`, val_loss 4.03, +0.75% (one" in found.sentence


def test_the_cheapest_of_the_confirmed_is_named(tmp_path):
    cheap, fair = record("hard-coded", 31.0, parameters=80), record("local", 32.0)
    base = record("learned", 30.0)
    found = judge(result(tmp_path, fair, cheap, base, objective="bleu"))
    assert "saves 20 of 100 parameters: `hard-coded`, val_bleu 31" in found.sentence
    assert found.rows[0].worse == pytest.approx(-1 / 30)


def test_all_hybrids_that_are_worse_are_refuted(tmp_path):
    hybrids = record("hard-coded", 4.4), record("n-gram", 4.2)
    found = judge(result(tmp_path, record("learned", 4.0), *hybrids))
    assert found.sentence.startswith("Refuted: no hybrid is at most 1% worse")
    assert "the nearest is `n-gram`, val_loss 4.2, +5.00%" in found.sentence


def test_several_seeds_count_by_their_interval(tmp_path):
    base = record("learned", 4.0, 4.2, 3.8)
    # 0.5 %, 1 % and 1.5 % worse than the same seed; Student's quantile is 4.3027.
    open_one = record("local", 4.02, 4.24, 3.86)
    found = judge(result(tmp_path, base, open_one))
    [row] = found.rows[:1]
    reach = 4.302653 * 0.005 / 3**0.5
    assert (row.low, row.high) == pytest.approx((0.01 - reach, 0.01 + reach))
    assert row.verdict == "open"
    assert found.sentence.startswith("Neither confirmed nor refuted")
    same = record("local", 4.001, 4.201, 3.801)
    assert judge(result(tmp_path, base, same)).rows[0].verdict == "confirmed"
    assert judge(result(tmp_path, base, open_one), 0.001).rows[0].verdict == "open"
    far = record("local", 4.4, 4.6, 4.2)
    assert "95 % interval +10." in judge(result(tmp_path, base, far)).sentence


def test_the_table(tmp_path):
    found = judge(result(tmp_path, record("learned", 4.0), record("local", 4.02)))
    assert len(found) == 2
    assert "Hybrids and baseline by val_loss, after 10 updates each" in str(found)
    assert "0.005" in str(found) and "pairs" not in str(found)
    found.to_csv(tmp_path / "hybrids.csv")
    rows = list(csv.DictReader((tmp_path / "hybrids.csv").read_text().splitlines()))
    assert rows[0]["hybrid"] == "local" and rows[0]["low"] == ""


def test_a_baseline_without_a_score_has_no_shares(tmp_path):
    records = record("learned", 0.0), record("local", 1.0)
    message = "val_bleu of the baseline must not be 0.* Received: 0$"
    with pytest.raises(ValueError, match=message):
        judge(result(tmp_path, *records, objective="bleu"))


@pytest.mark.parametrize("name", ["learned", "local"])
def test_a_verdict_needs_both(tmp_path, name):
    with pytest.raises(ValueError, match="needs the baseline and a hybrid"):
        judge(result(tmp_path, record(name, 4.0)))
