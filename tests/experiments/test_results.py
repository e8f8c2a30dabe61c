"""The results of a comparison survive a file; the made-up ones are complete."""

import json
import math

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


def test_scores_and_costs_by_name():
    result = comparison()
    assert result.score("hc-sa", "test2016", "BLEU").mean == 31.5
    assert result.score("none", "test2016", "BLEU") is None
    assert result.difference("sh-x", "test2017", "TER").difference == 1.0
    assert result.difference("base", "test2017", "TER") is None
    costs = result.costs("base")
    assert list(costs) == list(COSTS)
    assert costs["parameters"] == 1_575_424
    assert costs["seconds"] == 765.0  # the mean of 760 and 770
    assert costs["sentences_per_second"] == 40.0
