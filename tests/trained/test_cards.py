"""Cards of models: read and written as JSON, and shown as a page."""

import dataclasses
import json

import pytest

import keras_attnvariants as kav
from keras_attnvariants.trained import cards
from keras_attnvariants.trained.cards import Card
from keras_attnvariants.trained.cards import card_of
from keras_attnvariants.trained.cards import write_with_card
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import check_folder

CARD = Card(
    name="me/base/xx-yy",
    source="xx",
    target="yy",
    languages={"xx": "Exish"},
    license="CC BY 2.0",
    bleu=31.25,
    preset="kav/base/multi30k",
    variant="base",
    after="you2020/base/iwslt16-en-de",
    paper="A paper",
    attention=["DotProductAttention"],
    sizes={"num_layers": 3, "bidirectional": True, "source_vocabulary_size": None},
    parameters=3285504,
    bytes=4_000_000,
    search={"beam_size": 4},
    limits=["Not for the law."],
    data=cards.Data(
        name="toy",
        attribution="nobody",
        files={"train.xx": "0a1b"},
        pairs={"train": 600, "test": 20},
        mean_words=6.4,
        most_words=15,
        test_sources_in_training=0,
        test_targets_in_training=0,
    ),
    training=cards.Training(
        command=["kav", "train", "--data", "toy"],
        seed=1,
        updates=6000,
        target_tokens=11_800_000,
        seconds=1714,
        precision="mixed_bfloat16",
        weights="averaged",
        machine={"processor": "A Processor", "features": ""},
    ),
    scores=[cards.Score("BLEU", "nrefs:1|bs:1000", 31.25, 1.2, 31.3, 1.25, 0.3)],
    speed=cards.Speed(110.4, 971.2, 5.6, 939, {"processor": "A Processor"}),
    examples=[cards.Example("It's | good.", "Gut | ist es.", "Es ist gut.", 51.5)],
)


def test_the_page_says_in_words_what_the_card_has():
    page = CARD.page()
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
    assert (
        "- Machine: not recorded\n"
        in dataclasses.replace(CARD, training=training).page()
    )


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(20, 1, 8, 16, attention, attention, attention)
    return kav.save_model(model, tmp_path_factory.mktemp("models") / "plain")


def test_a_card_is_part_of_the_folder_of_its_model(model_folder, tmp_path):
    write_with_card(model_folder, CARD, tmp_path / "first")
    # Written again from a folder with a card, there is the new one only.
    other = dataclasses.replace(CARD, name="me/other/xx-yy")
    write_with_card(tmp_path / "first", other, tmp_path / "second")
    check_folder(tmp_path / "second", ("card.json", "README.md", "model.weights.h5"))
    assert card_of(tmp_path / "second") == other
    assert (tmp_path / "second" / "README.md").read_text("utf-8") == other.page()
    kav.load_model(tmp_path / "second")


def test_a_card_that_is_none_is_named(tmp_path):
    (tmp_path / "card.json").write_text(json.dumps({"name": "me/base/xx-yy"}))
    with pytest.raises(DamagedFolderError, match="card.json is no Card"):
        card_of(tmp_path)
    with pytest.raises(DamagedFolderError, match="card.json is missing"):
        card_of(tmp_path / "nothing")
