"""`kav models`, and models by name in commands."""

import dataclasses

import pytest

import keras_attnvariants
from keras_attnvariants.cli import catalogue
from keras_attnvariants.trained import hubs
from keras_attnvariants.trained import names
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.recipes import test_model_cards
from tests.recipes.conftest import module_of

write_with_card = module_of("pack_model").write_with_card

NAME = "kav/toy/reversed-xx-yy"
CARD = dataclasses.replace(
    test_model_cards.CARD,
    name=NAME,
    variant="toy",
    parameters=1_234_000,
    bytes=2_340_000,
    license="CC0-1.0",
    bleu=12.34,
)


@pytest.fixture
def box(run_folder, tmp_path, monkeypatch):
    """The models in the package: one, with a card."""
    model, tokenizer = keras_attnvariants.load_model(run_folder / "best")
    folder = tmp_path / "models" / NAME
    plain = tmp_path / "plain"
    keras_attnvariants.save_model(model, plain, tokenizer, packed=True)
    write_with_card(plain, CARD, folder)
    monkeypatch.setattr(names, "MODELS", tmp_path / "models")
    monkeypatch.setattr(catalogue, "MODELS", tmp_path / "models")
    return folder


def test_models_lists_names_languages_sizes_scores_and_licences(kav, box):
    heads, line = stdout(kav("models")).splitlines()
    assert heads.split() == [*("name", "languages", "params", "MB", "BLEU", "licence")]
    assert line.split() == [NAME, "xx-yy", "1.23M", "2.3", "12.3", "CC0-1.0"]


def test_commands_take_names(kav, box, tmp_path):
    found = stdout(kav("translate", "--model", NAME, "--beam-size", "1", "abe dik"))
    by_path = stdout(kav("translate", "--model", box, "--beam-size", "1", "abe dik"))
    assert found == by_path
    output = tmp_path / "saved"
    options = ["--ids-only", "--precision", "float32", "--output", output]
    assert str(output) in stdout(kav("export", "--model", NAME, *options))


def test_output_of_a_named_model_is_continued_by_its_digest(kav, box, tmp_path):
    (tmp_path / "in").write_text("abe\ndik\n")
    files = ["--input", tmp_path / "in", "--output", tmp_path / "out", "--resume"]
    (tmp_path / "out.part").touch()
    stdout(kav("translate", "--model", NAME, "--beam-size", "1", *files))
    assert len((tmp_path / "out").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "--model", "kav/toy/revers-xx", "text"],
        ["evaluate", "--model", "kav/toy/revers-xx", *"--data x --source x".split()]
        + ["--target", "y"],
        ["export", "--model", "kav/toy/revers-xx", "--output", "x"],
        ["attention", "--model", "kav/toy/revers-xx", "text"],
    ],
    ids=lambda command: command[0],
)
def test_commands_name_the_nearest_model(kav, box, command):
    check_error(
        kav(*command),
        "`--model` must be a folder that exists, the name of a trained model",
        f"Did you mean '{NAME}'? Received: 'kav/toy/revers-xx'",
    )


@pytest.mark.parametrize(
    "address", ["hf://a/../b", "hf://b", "ftp://a/b", "hf://a/b/c"]
)
def test_commands_refuse_other_addresses(kav, address):
    check_error(
        kav("translate", "--model", address, "text"),
        "must be hf://user/name, ",
        f"Received: '{address}'",
    )


def test_a_model_is_pushed_with_its_card(kav, box, run_folder, monkeypatch):
    pushed = {}

    def upload(folder, address):
        pushed[address] = {path.name for path in folder.iterdir()}
        return "https://hub/me/toy"

    monkeypatch.setattr(hubs, "upload", upload)
    assert stdout(kav("models", "push", NAME, "hf://me/toy")) == "https://hub/me/toy\n"
    assert pushed["hf://me/toy"] == {*hubs.FILES} - {"LICENSE"}
    stdout(kav("models", "push", run_folder / "best", "hf://me/plain"))
    assert "card.json" not in pushed["hf://me/plain"]


def test_a_model_is_not_pushed_to_other_addresses(kav, box):
    check_error(kav("models", "push", NAME, "hf://toy"), "must be hf://user/name")
