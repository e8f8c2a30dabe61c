"""Every format that an earlier version saved loads, and translates as it did then."""

import json
import shutil
from pathlib import Path

import pytest

import keras_attnvariants as kav
from keras_attnvariants.training.progress import read_log
from tests.fixtures.archives import extract
from tests.fixtures.make_formats import SOURCES
from tests.fixtures.make_formats import log_probs
from tests.fixtures.make_formats import train
from tests.fixtures.make_formats import translations
from tests.recipes.test_model_cards import card_of

ARCHIVES = sorted((Path(__file__).parent / "fixtures").glob("formats_of_*.tar.xz"))


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    extract(request.param, folder)
    return folder


@pytest.fixture(scope="module")
def then(saved):
    """The translations of then, by the format."""
    return json.loads((saved / "translations.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["model", "packed"])
def test_a_model_folder_translates_as_it_did(saved, then, name):
    model = kav.load_model(saved / name)
    assert translations(*model) == then[name]
    expected = then["log_probs" if name == "model" else f"log_probs_{name}"]
    assert log_probs(*model) == pytest.approx(expected, rel=1e-5)


def test_a_card_is_read(saved):
    assert card_of(saved / "packed").name == "me/base/xx-yy"


def test_a_saved_model_translates_as_it_did(saved, then):
    translator = kav.serving.SavedTranslator(saved / "saved_model")
    assert translator.translate(SOURCES) == then["saved_model"]


def test_the_model_of_a_run_translates_as_it_did(saved, then):
    assert translations(*kav.training.load_run(saved / "run")) == then["run"]
    assert read_log(saved / "run" / "log.jsonl")[-1]["event"] == "averaged"


@pytest.mark.slow
def test_a_run_goes_on(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path))
    run = shutil.copytree(saved / "run", tmp_path / "run")
    train(saved / "corpus", run, 6)
    events = read_log(run / "log.jsonl")
    assert [e["step"] for e in events if e["event"] == "period"] == [2, 4, 6]
