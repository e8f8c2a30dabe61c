import dataclasses
import itertools
import re

import numpy as np
import pytest

from keras_attnvariants.experiments.page.charts import Panel
from keras_attnvariants.experiments.page.charts import Point
from keras_attnvariants.experiments.page.charts import draw_panel
from keras_attnvariants.experiments.page.ranking import Ranking
from keras_attnvariants.experiments.page.result_charts import axis
from keras_attnvariants.experiments.page.result_charts import curves
from keras_attnvariants.experiments.page.result_charts import placed
from keras_attnvariants.experiments.page.result_charts import quality_against_cost
from keras_attnvariants.experiments.page.result_charts import thinned
from tests.experiments import made_up


@pytest.mark.parametrize("is_log", [False, True])
def test_an_axis_has_room_around_its_values(is_log):
    (low, high), places = axis([2.0, 8.0, 32.0], is_log)
    assert low < 2.0 and high > 32.0
    assert 0 < places[0] < places[1] < places[2] < 1
    assert places[0] == pytest.approx(1 - places[2])
    assert places[1] == pytest.approx(0.5) or not is_log


def test_an_axis_of_one_value_is_not_empty():
    for value in (0.0, 5.0, -5.0):
        (low, high), places = axis([value])
        assert low < value < high
        assert places == pytest.approx([0.5])


def test_names_of_near_points_do_not_cover_each_other():
    names = [f"system-{number}" for number in range(6)]
    points = np.array([(200 + 5 * n, 100 + n % 2) for n in range(6)])
    _, boxes = placed(names, points, 600)
    for one, other in itertools.combinations(boxes, 2):
        is_beside = one[2] <= other[0] or other[2] <= one[0]
        assert is_beside or one[3] <= other[1] or other[3] <= one[1]


def test_quality_against_cost_names_all_systems():
    result = made_up.comparison()
    drawn = quality_against_cost(Ranking.main(result), "seconds", 400, 300)
    assert set(re.findall(r'data-series="([^"]*)"', drawn)) == set(made_up.SYSTEMS)
    assert "sh-x: 32.00 BLEU (+1.00), training time 9.8 min" in drawn
    assert "base: 31.00 BLEU, the baseline, training time 12.8 min" in drawn
    assert 'width="' not in drawn.split(">", 1)[0]


def test_costs_that_were_not_measured_are_not_drawn():
    small = made_up.comparison()
    result = dataclasses.replace(small, runs=())
    assert quality_against_cost(Ranking.main(result), "seconds", 9, 9) == ""


def test_long_names_are_whole():
    names = [f"{40 * 'long-'}{number}" for number in range(5)]
    points = [Point(name, 1.0, name, name) for name in names]
    drawn = draw_panel(Panel("", "bars", points, "across"), names)
    assert [name for name in names if f">{name}</text>" in drawn] == names


def test_a_line_for_each_run():
    panels = list(curves(made_up.comparison()))
    titles = [panel.title for panel in panels]
    assert titles[:2] == ["validation BLEU", "validation BLEU, second half"]
    lines = {(point.series, point.group) for point in panels[0].points}
    assert lines == {(name, seed) for name in made_up.SYSTEMS for seed in "12"}
    assert min(point.x for point in panels[1].points) == 3000


def test_long_curves_keep_their_ends():
    values = [(float(x), 0.0) for x in range(1000)]
    kept = thinned(values)
    assert len(kept) <= 61 and (kept[0], kept[-1]) == (values[0], values[-1])
    assert thinned(values[:1]) == values[:1]
