"""The recipe of the models in the package: what it trains, in which order."""

import dataclasses
import sys

import pytest

from keras_attnvariants.presets.kav import BY_CORPUS
from tests.recipes.conftest import module_of
from tests.recipes.test_model_cards import CARD

write_with_card = module_of("pack_model").write_with_card


@pytest.fixture
def recipe():
    """The recipe as a module."""
    return module_of("train_models")


@pytest.fixture
def calls(recipe, tmp_path, monkeypatch):
    """The commands that the recipe would run; packing writes only cards."""
    found = []
    nothing = tmp_path / "nothing"
    nothing.mkdir()

    def run(*arguments):
        if arguments[:2] == recipe.KAV:
            found.append([str(argument) for argument in arguments[2:]])
            return
        found.append(["pack", *map(str, arguments[1:])])
        bleu = 40.0 if "kav/context/" in arguments[2] else 30.0
        card = dataclasses.replace(CARD, name=arguments[2], bleu=bleu)
        write_with_card(nothing, card, arguments[-1])

    def export(model, served):
        found.append(["export", str(model), str(served)])

    monkeypatch.setattr(recipe, "run", run)
    monkeypatch.setattr(recipe, "export", export)
    options = ["--runs", tmp_path / "runs", "--models", tmp_path / "models"]
    given = ["train_models", "--data", tmp_path / "toy", *options]
    monkeypatch.setattr(sys, "argv", list(map(str, given)))
    return found


def test_each_is_trained_and_packed_and_the_best_both_ways(recipe, calls, tmp_path):
    recipe.main()
    packed = [call[2] for call in calls if call[0] == "pack"]
    names = [f"kav/{variant}/tatoeba-en-de" for variant in BY_CORPUS["tatoeba-en-de"]]
    assert packed == [*names, "kav/context/tatoeba-de-en"]
    trained = [call for call in calls if call[0] == "train"]
    assert len(trained) == 8
    last = " ".join(trained[-1])
    assert "--source de --target en --preset kav/context/tatoeba-de-en" in last
    assert last.endswith(f"--run {tmp_path}/runs/context-de-en")
    exported = [call[1:] for call in calls if call[0] == "export"]
    model = tmp_path / "models" / "kav" / "hc-sa" / "tatoeba-en-de"
    assert exported == [[str(model), str(recipe.SERVED)]]
    calls.clear()
    recipe.main()
    assert [call[0] for call in calls] == ["export"]


def test_what_is_exported_already_is_left_as_it_is(recipe, tmp_path):
    (tmp_path / "served" / "1").mkdir(parents=True)
    recipe.export(tmp_path / "no-model", tmp_path / "served")


def test_it_ends_where_a_command_fails(recipe):
    with pytest.raises(SystemExit) as error:
        recipe.run(*recipe.KAV, "presets", "no-such-preset")
    assert error.value.code == 2
