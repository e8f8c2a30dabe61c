"""A published figure stands beside ours of the same kind and direction, or alone."""

import dataclasses

import pytest

from keras_attnvariants import presets
from keras_attnvariants.experiments.page.published import FIGURES
from keras_attnvariants.experiments.page.published import our_difference
from keras_attnvariants.experiments.page.published import our_figure
from keras_attnvariants.experiments.page.rendering import rendered
from keras_attnvariants.experiments.summary import flat
from tests.experiments import made_up

# All that may stand beside each other, for a comparison from English to German.
PAIRS = {
    "bleu en-de": 31.5,
    "ter en-de": 52.5,
    "parameters": 1_375_424,
    "relative_training_time": 675 / 765,
    "sentences_per_second": 50.0,
}


def with_figures(**figures):
    """A comparison whose second system has these figures of a paper."""
    result = made_up.comparison()
    base, second, third = (
        dataclasses.replace(system, published={}) for system in result.systems
    )
    published = {name.replace("_en_", " en-"): v for name, v in figures.items()}
    second = dataclasses.replace(second, published=published, published_differences={})
    return dataclasses.replace(result, systems=(base, second, third))


def all_figures():
    """Every figure of every preset, and scores in every direction."""
    published = [flat(preset.published) for preset in presets.list()]
    names = {figure for figures in published for figure in figures}
    return sorted(
        names | {"bleu de-en", "ter de-en", "dev_bleu en-de", "dev_ter en-de"}
    )


@pytest.mark.parametrize("figure", all_figures())
def test_only_like_stands_beside_like(figure):
    found = our_figure(made_up.comparison(), "hc-sa", figure)
    assert found == (pytest.approx(PAIRS[figure]) if figure in PAIRS else None)


def test_every_field_has_a_form():
    fields = {field.name for field in dataclasses.fields(presets.PublishedFigures)}
    assert set(FIGURES) == fields


def test_figures_have_their_own_form():
    result = with_figures(
        bleu_en_de=26.71, parameters=116e6, relative_training_time=5.6, loss=2.7
    )
    text = rendered(result).split('id="published"')[1].split("</table>")[0]
    cells = text.replace("\xa0", " ").replace("</td>", "").split("\n")
    shown = [cell.partition(">")[2] for cell in cells if cell.startswith("<td")]
    assert shown == [
        *("you2020/hc-sa/iwslt16-en-de", "BLEU en-de", "26.71", "–", "31.50", "+0.50"),
        *("you2020/hc-sa/iwslt16-en-de", "parameters", "116 M", "–"),
        *("1.38 M", "−0.20 M"),
        *("you2020/hc-sa/iwslt16-en-de", "training time of an update", "5.6 ×", "–"),
        *("0.88 ×", "−0.12 ×"),
        *("you2020/hc-sa/iwslt16-en-de", "loss", "2.7", "–", "–", "–"),
    ]


def test_the_baseline_has_no_difference_to_itself():
    assert our_difference(made_up.comparison(), "base", "bleu en-de") is None


def test_what_was_not_measured_has_no_pair():
    result = dataclasses.replace(made_up.comparison(), runs=(), scores=())
    for figure in ("bleu en-de", "relative_training_time"):
        assert our_figure(result, "hc-sa", figure) is None
