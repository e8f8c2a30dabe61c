"""All presets by name: finding one, and lists of them."""

import dataclasses
from io import StringIO

import pytest
from rich.console import Console

from keras_attnvariants import presets
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import PhraseAttention


def test_names_are_unique_and_get_returns_them():
    names = presets.names()
    assert len(set(names)) == len(names) > 170
    assert all(presets.get(name).name == name for name in names)


def test_a_name_may_be_cut_short_where_one_preset_continues_it():
    assert presets.get("you2020/hc-sa/iwslt16").name == "you2020/hc-sa/iwslt16-en-de"
    assert presets.get("you2020/conv/wmt16").name == "you2020/conv/wmt16-en-ro"


@pytest.mark.parametrize(
    ("paper", "ours"),
    [
        ("you2020/base/-sa/iwslt16", "you2020/base-no-sa/iwslt16-en-de"),
        ("you2020/sh-x/-sa/wmt16", "you2020/sh-x-no-sa/wmt16-en-ro"),
        ("you2020/hc-sa/-ff/wmt14-en-fr", "you2020/hc-sa-no-ff/wmt14-en-fr"),
    ],
)
def test_the_names_of_the_paper_are_understood(paper, ours):
    assert presets.get(paper).name == ours


def test_names_are_safe_in_paths_and_addresses():
    for name in presets.names():
        assert all(
            part and part.replace("-", "").isalnum() and part[0] != "-"
            for part in name.split("/")
        ), name


def test_a_name_that_fits_two_presets_is_refused_with_both():
    with pytest.raises(ValueError, match=r"en-de, .*en-fr.*Received: .*wmt14") as error:
        presets.get("you2020/hc-sa/wmt14")
    assert "iwslt" not in str(error.value)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="you2020/hc-sa/iwslt16-en-de.*Received"):
        presets.get("you2020/hcsa/iwslt16")
    with pytest.raises(ValueError, match=r"names\(\)"):
        presets.get("0")


def test_a_name_is_registered_once():
    preset = presets.get("you2020/base/iwslt16")
    with pytest.raises(
        ValueError, match="already registered.*Received: 'you2020/base/"
    ):
        presets.register(dataclasses.replace(preset, notes="another"))


@pytest.mark.parametrize("name", ["base", "you2020/base", "a/b/c/d"])
def test_a_name_has_three_parts(name):
    preset = presets.get("you2020/base/iwslt16")
    with pytest.raises(ValueError, match=f"paper/variant/corpus. Received: '{name}'"):
        presets.register(dataclasses.replace(preset, name=name))


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("you2020/neural-ngram/wmt16", "loem2022/neural-ngram/wmt16-en-de"),
        ("loem2022/hc-sa/iwslt16-en-de", "you2020/hc-sa/iwslt16-en-de"),
        ("interleaved-querk", "kav/interleaved-query-k/multi30k"),
        ("rosendahl2021/weigths/wmt16", "rosendahl2021/weights/wmt16-ro-en"),
    ],
)
def test_the_nearest_names_are_sought_in_all_papers(wrong, near):
    with pytest.raises(ValueError, match=f"nearest are .*{near}.*Received: '{wrong}'"):
        presets.get(wrong)


def test_without_filters_all_presets_are_listed_and_nothing_is_printed(capsys):
    listed = presets.list()
    assert listed.names == presets.names()
    assert len(listed) == len(presets.names())
    assert listed[0] is presets.get(presets.names()[0])
    assert isinstance(listed[:3], presets.PresetList)
    assert listed[:3].names == presets.names()[:3]
    assert listed[1] in listed
    assert capsys.readouterr().out == ""


def test_filter_by_text_in_the_name():
    expected = [name for name in presets.names() if "hc-sa" in name]
    assert presets.list("hc-sa").names == presets.list("HC-SA").names == expected
    assert presets.list("hc-sa/iwslt16").names == ["you2020/hc-sa/iwslt16-en-de"]


@pytest.mark.parametrize("paper", ["nguyen2018", "Nguyen and Joty", "phrase-based"])
def test_filter_by_paper(paper):
    expected = [name for name in presets.names() if name.startswith("nguyen2018/")]
    assert presets.list(paper=paper).names == expected


def test_filter_by_attention_class_or_variant():
    by_class = presets.list(variant=HardCodedAttention)
    assert by_class.names == presets.list(variant="HardCodedAttention").names
    assert "you2020/hc-sa/iwslt16-en-de" in by_class.names
    assert "kav/hc-all/multi30k" in by_class.names
    assert "you2020/base/iwslt16-en-de" not in by_class.names
    papers = {preset.name.split("/")[0] for preset in by_class}
    assert papers == {"you2020", "kav"}
    by_name = presets.list(variant="sh-x")
    assert {preset.variant for preset in by_name} == {"sh-x"}
    assert presets.list(variant=PhraseAttention, paper="you2020").names == []


def test_filter_by_parameters():
    listed = presets.list(paper="you2020", min_parameters=15 * 10**6)
    assert {preset.parameters >= 15 * 10**6 for preset in listed} == {True}
    exact = presets.get("you2020/hc-sa/iwslt16").parameters
    one = presets.list("iwslt16", min_parameters=exact, max_parameters=exact)
    assert "you2020/hc-sa/iwslt16-en-de" in one.names
    assert "you2020/base/iwslt16-en-de" not in one.names
    small = presets.list(max_parameters=5 * 10**6)
    assert {preset.name.split("/")[0] for preset in small} == {"cs287", "kav"}


@pytest.mark.parametrize("bound", ["min_parameters", "max_parameters"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "1"])
def test_a_bound_must_be_a_positive_integer(bound, value):
    with pytest.raises(ValueError, match=f"`{bound}` must be a positive integer"):
        presets.list(**{bound: value})


def test_whole_names_are_shown_even_where_there_is_little_room():
    text = repr(presets.list("iwslt16"))
    for name in presets.names():
        assert (name in text) == ("iwslt16" in name)
    assert "17.14M" in text
    assert "de-en 34.8" in text
    assert str(presets.list("iwslt16")) == text


def test_the_list_of_all_fits_into_80_columns_and_goes_by_paper():
    text = repr(presets.list())
    assert max(len(line) for line in text.splitlines()) <= 80
    assert all(name in text for name in presets.names())
    papers = [presets.get(name).paper for name in presets.names()]
    titles = [text.index(paper[:60]) for paper in dict.fromkeys(papers)]
    assert titles == sorted(titles)
    assert len(titles) >= 5
    assert text.count("\npreset ") == len(titles)


def words(listed):
    return " ".join(repr(listed).split())


def test_figures_have_the_digits_of_the_paper():
    assert "6+8x512 62.23M dev en-de 26.46" in words(
        presets.list("loem2022/decoder-ngram")
    )
    assert "rouge-1 37.80, rouge-2 18.91," in words(
        presets.list("self-attention/gigaword")
    )
    both = words(presets.list("nguyen2018/"))
    assert "6x512 116.53M en-de 27.40, de-en 30.30" in both
    base = words(presets.list("base/wmt14"))
    assert "you2020/base/wmt14-en-de 6x512 60.49M en-de 26.8" in base
    ours = words(presets.list("kav/base/bible"))
    assert ours.endswith("kav/base/bible 3x256 4.97M")


def test_an_empty_list_says_so():
    empty = presets.list("no such preset")
    assert len(empty) == 0
    assert repr(empty) == "No presets."
    assert "No presets." in empty._repr_mimebundle_((), ())["text/html"]


def test_a_console_prints_the_table():
    console = Console(width=80, record=True, file=StringIO())
    console.print(presets.list("kav/"))
    text = console.export_text()
    assert "\npreset " in text
    assert all(name in text for name in presets.list("kav/").names)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_sizes_are_layers_and_width():
    assert " 1x200 " in words(presets.list("cs287/seq2seq-attn"))
    assert " 5x288 15.48M en-de 30.3, de-en 34.8" in words(
        presets.list("you2020/hc-sa/iwslt16")
    )


def test_notebooks_show_a_table():
    shown = presets.list("hc-sa/iwslt16")._repr_mimebundle_((), ())["text/html"]
    assert "You, Sun and Iyyer 2020" in shown
    assert "you2020/hc-sa/iwslt16-en-de" in shown and "5x288" in shown
