"""Names of presets: what is accepted, what an unknown one is answered with."""

import dataclasses

import pytest

from keras_attnvariants import presets


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
