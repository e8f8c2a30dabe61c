"""A run becomes a small model with a card, or the recipe says why not."""

import dataclasses
import shutil

import pytest
from typer.testing import CliRunner

import keras_attnvariants as package
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.machine import hardware
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.recipes.conftest import module_of
from tests.recipes.test_model_cards import CARD
from tests.recipes.test_model_cards import cards

pack_model = module_of("pack_model")

LANGUAGES = ("--source", "xx", "--target", "yy")
SMALL = {"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 16, "num_heads": 2}
ABOUT = """
license = "CC BY 2.0"
attribution = "made up"
limits = ["Words that mean nothing."]
languages = {xx = "Exish", yy = "Whyish"}
examples = [{xx = "abi den kolo umi", yy = "umi kolo den abi", zz = "?"}]
"""


@pytest.fixture
def pack(monkeypatch, corpus_cache):
    """Runs the recipe with these arguments."""
    monkeypatch.setenv("KAV_CACHE", str(corpus_cache))

    def run(*arguments):
        return CliRunner().invoke(pack_model.app, list(map(str, arguments)))

    return run


@pytest.fixture(scope="module")
def data(corpus_folder, tmp_path_factory):
    """The corpus of reversed sentences, with none of the test set in training."""
    folder = shutil.copytree(corpus_folder, tmp_path_factory.mktemp("data") / "toy")
    files = [folder / "test.xx", folder / "test.yy"]
    test = zip(*(file.read_text().splitlines() for file in files), strict=True)
    known = set((folder / "train.xx").read_text().splitlines())
    new = [pair for pair in test if pair[0] not in known]
    for file, lines in zip(files, zip(*new, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def run(data, corpus_cache, tmp_path_factory):
    """A short run of a preset of ours with other sizes."""
    corpus = package.data.load_corpus(data, "xx", "yy", corpus_cache)
    folder = tmp_path_factory.mktemp("runs") / "base"
    package.training.train_preset(
        package.presets.get("kav/base/multi30k"),
        corpus,
        folder,
        vocabulary_size=50,
        batch_tokens=512,
        sizes=SMALL,
        settings={"steps": 4, "validate_every": 2},
        precision="float32",
        seed=7,
        verbose=0,
    )
    return folder


@pytest.fixture
def about(tmp_path):
    path = tmp_path / "about.toml"
    path.write_text(ABOUT, "utf-8")
    return path


@pytest.mark.slow
def test_a_run_becomes_a_small_model_with_a_card(pack, run, data, about, tmp_path):
    place = tmp_path / "packed"
    options = ("--data", data, *LANGUAGES, "--about", about, "--output", place)
    out = stdout(pack(run, "me/base/xx-yy", *options))
    assert f"Next: kav translate --model {place} 'A sentence.'" in out
    card = cards.card_of(place)
    assert f"BLEU  {card.bleu:6.2f}" in out
    assert (place / "README.md").read_text("utf-8") == pack_model.page_of(card)
    model, tokenizer = package.load_model(place)
    assert model.count_params() == card.parameters
    assert {path.name for path in place.iterdir()} >= {"card.json", "README.md"}
    assert set(card.data.files) == {path.name for path in data.iterdir()}
    assert card.data.pairs["train"] == 600
    assert card.after == "you2020/base/iwslt16-en-de"
    command = " ".join(card.training.command)
    assert command.startswith("kav train --data toy --source xx --target yy --preset ")
    assert "--preset kav/base/multi30k --precision float32 --seed 7 " in command
    for option in ("--layers 1", "--width 16", "--heads 2", "--batch-tokens 512"):
        assert option in command
    assert "--steps 4 " in command and "--validate-every 2" in command
    assert command.endswith("--run runs/base")
    assert str(tmp_path) not in (place / "card.json").read_text()
    assert (card.training.updates, card.training.seed) == (4, 7)
    assert card.training.machine == hardware()
    report = package.evaluation.evaluate(
        place, *package.data.load_corpus(data, "xx", "yy").read_lines("test")
    )
    assert report.scores[0].value == pytest.approx(card.bleu, abs=0.01)
    [example] = card.examples
    assert (example.source, example.reference) == (
        "abi den kolo umi",
        "umi kolo den abi",
    )


def test_a_test_set_with_training_sentences_is_refused(
    pack, run, corpus_folder, about, tmp_path
):
    options = ("--data", corpus_folder, *LANGUAGES, "--about", about)
    result = pack(run, "me/base/xx-yy", *options)
    check_error(result, "The test set must not have", "sources and", "targets")


def test_another_corpus_than_that_of_the_run_is_refused(
    pack, run, data, about, tmp_path
):
    other = shutil.copytree(data, tmp_path / "other")
    for language in ("xx", "yy"):
        (other / f"train.{language}").write_text("oto\n" * 3)
    options = ("--data", other, *LANGUAGES, "--about", about)
    result = pack(run, "me/base/xx-yy", *options)
    check_error(result, "--data must be what the run was trained on", str(run))


def test_examples_of_the_corpus_are_refused(pack, run, data, about):
    line = (data / "validation.xx").read_text().splitlines()[0]
    about.write_text(ABOUT.replace("abi den kolo umi", line), "utf-8")
    options = ("--data", data, *LANGUAGES, "--about", about)
    result = pack(run, "me/base/xx-yy", *options)
    check_error(result, "must be sentences of your own", repr(line), "of the corpus")
    about.write_text(ABOUT.replace('yy = "u', 'qq = "u'), "utf-8")
    result = pack(run, "me/base/xx-yy", *options)
    check_error(result, "must have [[examples]]", "['xx', 'yy']")


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ('license = "CC BY 2.0"', "", "license"),
        ("limits =", "limits", "Received"),
    ],
)
def test_a_file_about_the_model_that_lacks_something_is_named(
    pack, run, data, about, old, new, problem
):
    about.write_text(ABOUT.replace(old, new), "utf-8")
    options = ("--data", data, *LANGUAGES, "--about", about)
    result = pack(run, "me/base/xx-yy", *options)
    check_error(result, problem, str(about))


def test_a_run_without_a_preset_is_refused(pack, run_folder, data, about):
    options = ("--data", data, *LANGUAGES, "--about", about)
    result = pack(run_folder, "me/base/xx-yy", *options)
    check_error(result, "must be one of `kav train`", str(run_folder))
    result = pack(data, "me/base/xx-yy", *options)
    check_error(result, "the folder of a run, with log.jsonl", str(data))


def test_the_parts_of_a_card_that_a_preset_decides():
    found = pack_model.described(package.presets.get("kav/neural-ngram/multi30k"))
    assert found["paper"].startswith("Loem, Takase")
    assert "attention" not in found["sizes"]
    found = pack_model.described(package.presets.get("you2020/base/iwslt16"))
    assert found["after"] == "" and found["paper"].startswith("You, Sun")


def test_the_page_says_in_words_what_the_card_has():
    page = pack_model.page_of(CARD)
    head, _, body = page.removeprefix("---\n").partition("\n---\n")
    assert "language:\n- xx\n- yy\nlicense: cc-by-2.0\n" in head
    assert body.startswith("\n# me/base/xx-yy\n\nExish to yy:")
    for text in (
        "--model me/base/xx-yy 'It'\"'\"'s | good.'",
        "`kav/base/multi30k`, with the architecture of `you2020/base/iwslt16-en-de`",
        "Sizes: num layers 3, bidirectional\n",
        "3,285,504",
        "4.0 MB",
        "600 in train, 20 in test",
        "| train.xx | 0a1b |",
        "kav train --data toy\n",
        "6,000, with 11,800,000 target tokens",
        "29 minutes",
        "the mean of those of the last validations",
        "Machine: processor A Processor\n",
        "| BLEU | 31.25 ± 1.20 | 31.30 ± 1.25 | 0.300 | `nrefs:1\\|bs:1000` |",
        "110 sentences and 971 tokens",
        "| It's \\| good. | Gut \\| ist es. | Es ist gut. | 51.5 |",
        "\n- Not for the law.\n",
    ):
        assert text in body
    assert "{" not in page and "None" not in page


def test_a_run_that_did_not_record_its_machine_is_said_to():
    training = dataclasses.replace(CARD.training, machine={})
    card = dataclasses.replace(CARD, training=training)
    assert "- Machine: not recorded\n" in pack_model.page_of(card)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    attention = package.DotProductAttention(num_heads=2)
    model = package.Transformer(20, 1, 8, 16, attention, attention, attention)
    return package.save_model(model, tmp_path_factory.mktemp("models") / "plain")


def test_a_card_is_part_of_the_folder_of_its_model(model_folder, tmp_path):
    pack_model.write_with_card(model_folder, CARD, tmp_path / "first")
    # A copy of a folder with a card has the new card only.
    other = dataclasses.replace(CARD, name="me/other/xx-yy")
    pack_model.write_with_card(tmp_path / "first", other, tmp_path / "second")
    check_folder(tmp_path / "second", ("card.json", "README.md", "model.weights.h5"))
    assert cards.card_of(tmp_path / "second") == other
    assert (tmp_path / "second" / "README.md").read_text("utf-8") == pack_model.page_of(
        other
    )
    package.load_model(tmp_path / "second")
