import dataclasses
import re

from keras_attnvariants.experiments.page.charts import SERIES
from keras_attnvariants.experiments.page.charts import Panel
from keras_attnvariants.experiments.page.charts import Point
from keras_attnvariants.experiments.page.charts import curves
from keras_attnvariants.experiments.page.charts import draw_panel
from keras_attnvariants.experiments.page.charts import quality_against_cost
from keras_attnvariants.experiments.page.charts import thinned
from keras_attnvariants.experiments.page.ranking import Ranking
from tests.experiments import made_up


def test_quality_against_cost_names_all_systems():
    result = made_up.comparison()
    panel = quality_against_cost(Ranking.main(result), "seconds")
    drawn = draw_panel(panel, made_up.SYSTEMS)
    assert set(re.findall(r'data-series="([^"]*)"', drawn)) == set(made_up.SYSTEMS)
    assert "sh-x: 32.00 BLEU (+1.00), training time 9.8 min" in drawn
    assert "base: 31.00 BLEU, the baseline, training time 12.8 min" in drawn
    assert 'width="' not in drawn.split(">", 1)[0]


def test_points_whose_color_returns_are_hollow():
    panel = quality_against_cost(Ranking.main(made_up.comparison()), "seconds")
    filled = draw_panel(panel, made_up.SYSTEMS)
    hollow = draw_panel(panel, [*map(str, range(len(SERIES))), *made_up.SYSTEMS])
    assert filled.count('fill="var(--paper)"') == 0
    assert hollow.count('fill="var(--paper)"') == len(made_up.SYSTEMS)


def test_costs_that_were_not_measured_are_not_drawn():
    small = made_up.comparison()
    result = dataclasses.replace(small, runs=())
    assert quality_against_cost(Ranking.main(result), "seconds") is None


def test_long_names_are_whole():
    names = [f"{40 * 'long-'}{number}" for number in range(5)]
    points = [Point(name, 1.0, name, name) for name in names]
    drawn = draw_panel(Panel("", "bars", points, "across"), names)
    assert [name for name in names if f">{name}</text>" in drawn] == names


def test_a_line_for_each_run():
    panels = list(curves(made_up.comparison()))
    titles = [panel.title for panel in panels]
    assert titles[:2] == ["validation score", "validation score, second half"]
    lines = {(point.series, point.group) for point in panels[0].points}
    assert lines == {(name, seed) for name in made_up.SYSTEMS for seed in "12"}
    assert min(point.x for point in panels[1].points) == 3000


def test_long_curves_keep_their_ends():
    values = [(float(x), 0.0) for x in range(1000)]
    kept = thinned(values)
    assert len(kept) <= 61 and (kept[0], kept[-1]) == (values[0], values[-1])
    assert thinned(values[:1]) == values[:1]
