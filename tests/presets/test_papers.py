"""Files of papers: tables, and the settings that presets have in common."""

import pytest

from keras_attnvariants import presets
from keras_attnvariants.presets.papers import fits
from keras_attnvariants.presets.papers import merged
from keras_attnvariants.presets.papers import read_table


@pytest.mark.parametrize(
    "name", ["you2020/base/wmt14-en-de", "nguyen2018/base/wmt16-en-de"]
)
def test_sizes_of_the_base_model_are_those_of_vaswani_et_al(name):
    options = presets.get(name).options
    sizes = ("num_layers", "hidden_dim", "intermediate_dim", "num_heads")
    assert [options[size] for size in sizes] == [6, 512, 2048, 8]


def test_tables_have_options_and_figures():
    rows = read_table(
        """
        model  num_layers  tied   bleu  ter   bleu.fr-en  rouge.rouge-1 loss
        one    6           False  27.0  51.5  27.1
        two    -           -      -     -     -           1.5           2
        """,
        "wmt14-en-fr",
    )
    assert rows["one"] == (
        {"num_layers": 6, "tied": False},
        presets.PublishedFigures({"en-fr": 27.0, "fr-en": 27.1}, ter={"en-fr": 51.5}),
    )
    assert rows["two"] == (
        {},
        presets.PublishedFigures(rouge={"rouge-1": 1.5}, loss=2),
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"models": ["lowest-*"]}, True),
        ({"models": ["other", "lowest-2"]}, True),
        ({"models": ["lowest"]}, False),
        ({"corpora": ["wmt16-*"]}, True),
        ({"corpora": ["iwslt*"], "models": ["lowest-*"]}, False),
        ({"scored": True}, True),
        ({"scored": False}, False),
    ],
    ids=str,
)
def test_settings_fit_presets_by_patterns_of_their_names(settings, expected):
    assert fits(settings, "lowest-2", "wmt16-en-de", is_scored=True) == expected


def test_later_settings_are_stronger():
    settings = [{"options": {"a": 1, "b": 1}}, {"training": {}}, {"options": {"b": 2}}]
    assert merged(settings, "options") == {"a": 1, "b": 2}
