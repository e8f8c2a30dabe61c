"""`--import`: a variant and a preset of the user, from training to an export."""

import sys

import keras
import pytest

from keras_attnvariants import attention
from keras_attnvariants.presets import registry
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout

NAME = "variants_of_mine"
MODULE = """
from dataclasses import replace

import keras

import keras_attnvariants as kav


@keras.saving.register_keras_serializable(package="mine")
class Sharp(kav.DotProductAttention):
    pass


BASE = kav.presets.get("kav/base/bible")


def architecture(**options):
    config = BASE.architecture(**options)
    decoder = {**config["decoder_attention"], "class_name": "mine>Sharp"}
    return {**config, "decoder_attention": decoder}


kav.presets.register(replace(BASE, name="mine/sharp/bible", architecture=architecture))
"""
IMPORT = ("--import", NAME)


@pytest.fixture
def forget(tmp_path, monkeypatch):
    """Puts the module into the working directory; forgets it as a new process would."""
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))

    def forget():
        sys.modules.pop(NAME, None)
        registry._presets.pop("mine/sharp/bible", None)
        keras.saving.get_custom_objects().pop("mine>Sharp", None)

    forget()
    yield forget
    forget()


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_from_training_to_an_export(kav, forget, corpus_folder, tmp_path):
    run, saved = tmp_path / "run", tmp_path / "saved"
    corpus = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    sizes = ("--layers", 1, "--width", 16, "--feed-forward", 16, "--heads", 2)
    short = ("--steps", 2, "--validate-every", 2, "--samples", 0)
    small = ("--vocabulary-size", 50, "--batch-tokens", 256, "--precision", "float32")
    train = ("train", *corpus, *sizes, *short, *small, "--run", run)
    train = (*train, "--score-sentences", 0, "--preset", "mine/sharp/bible")
    check_error(kav(*train), "mine/sharp/bible")
    stdout(kav(*train, *IMPORT))

    forget()
    translate = ("translate", "be la", "--model", run, "--beam-size", 1)
    check_error(kav(*translate), "'Sharp'", "--import", str(run))
    by_model = stdout(kav(*translate, *IMPORT))
    scores = ("--model", run, "--beam-size", 1, "--sentences", 2)
    assert "BLEU" in stdout(kav("evaluate", *corpus, *scores, *IMPORT))

    forget()
    export = ("export", "--model", run, "--output", saved, "--beam-size", 1)
    check_error(kav(*export), "'Sharp'", "--import")
    stdout(kav(*export, *IMPORT))
    forget()
    assert stdout(kav("translate", "be la", "--saved-model", saved)) == by_model


SEARCHED = """
import keras_attnvariants as kav
from keras_attnvariants.attention.registry import register_attention


@register_attention("mine", ({"num_heads": 4, "key_dim": 4},))
class Blunt(kav.DotProductAttention):
    pass
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_import_what_they_search(kav, corpus_folder, tmp_path, monkeypatch):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text(SEARCHED)
    (tmp_path / "space.toml").write_text('[attention]\nencoder = ["Blunt"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    corpus = ("--data", corpus_folder, "--source", "xx", "--target", "yy")
    sizes = ("--layers", 1, "--width", 8, "--feed-forward", 8, "--heads", 2)
    small = ("--vocabulary-size", 50, "--batch-tokens", 256, "--precision", "float32")
    tune = ("tune", *corpus, *sizes, *small, "--space", "space.toml")
    tune = (*tune, "--preset", "kav/base/bible", "--search", "search")
    short = ("--updates", 2, "--validations", 1, "--workers", 2)
    try:
        found = stdout(kav(*tune, *short, "--import", "package.module"))
    finally:
        attention.registry._variants.pop("Blunt", None)
    assert "encoder Blunt" in found


def test_the_preset_is_listed(kav, forget):
    check_error(kav("presets", "--paper", "mine", "sharp"), "No preset fits")
    assert "mine/sharp/bible" in stdout(kav("presets", "sharp", *IMPORT))


@pytest.mark.parametrize("name", ["no_such_module", "no_such.module", "broken_module"])
def test_a_module_that_cannot_be_imported(kav, forget, tmp_path, name):
    (tmp_path / "broken_module.py").write_text("def\n")
    check_error(kav("presets", "--import", name), "`--import` cannot be", name)


def test_a_server_needs_no_modules(kav):
    call = ("translate", "a", "--server", "localhost:1/m", *IMPORT)
    check_error(kav(*call), "--import apply to --model")
