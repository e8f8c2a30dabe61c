"""The results of a comparison survive a file; the made-up ones are complete."""

import json
import math
from dataclasses import replace

import pytest

from keras_attnvariants.experiments import ComparisonResult
from keras_attnvariants.experiments.result_parts import COSTS
from keras_attnvariants.utils.files import DamagedFolderError
from tests.experiments.made_up import comparison


def test_results_survive_their_file(tmp_path):
    result = comparison()
    result.write(tmp_path / "results.json")
    assert ComparisonResult.read(tmp_path / "results.json") == result


def test_the_file_is_plain_json_without_nan(tmp_path):
    result = comparison()
    table = result.analyses[0]
    object.__setattr__(table, "rows", ((math.nan, math.inf, "text"),))
    result.write(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text("utf-8")
    values = json.loads(text, parse_constant=pytest.fail)
    assert values["analyses"][0]["rows"] == [[None, None, "text"]]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"title": 1, "no": 2}'])
def test_a_damaged_file_is_named(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(DamagedFolderError, match="results.json"):
        ComparisonResult.read(path)


def test_costs_are_those_of_one_kind_of_processor():
    result = comparison()
    first, other, *rest = result.runs
    assert (first.system, other.system) == ("base", "base")
    runs = replace(first, processor="another"), other, *rest
    mixed = replace(result, runs=runs)
    # Runs of earlier versions have no processor: they count as those of the others.
    assert mixed.processors == ["another"]
    assert mixed.costs("base")["seconds"] == (first.seconds + other.seconds) / 2
    runs = runs[0], *(replace(run, processor="most") for run in runs[1:])
    system = replace(result.systems[0], processor="another")
    mixed = replace(mixed, runs=runs, systems=(system, *result.systems[1:]))
    assert mixed.processors == ["most", "another"]
    assert mixed.costs("base")["seconds"] == other.seconds
    assert mixed.costs("base")["sentences_per_second"] is None
    assert mixed.costs("base")["parameters"] == 1_575_424


def test_scores_and_costs_by_name():
    result = comparison()
    assert result.score("hc-sa", "test2016", "BLEU").mean == 31.5
    assert result.score("none", "test2016", "BLEU") is None
    with pytest.raises(ValueError, match="has no 'hcsa'. Did you mean 'hc-sa'"):
        result.costs("hcsa")
    assert result.difference("sh-x", "test2017", "TER").difference == 1.0
    assert result.difference("base", "test2017", "TER") is None
    costs = result.costs("base")
    assert list(costs) == list(COSTS)
    assert costs["parameters"] == 1_575_424
    assert costs["seconds"] == 765.0  # the mean of 760 and 770
    assert costs["sentences_per_second"] == 40.0
