"""Cards of models, as JSON."""

import json

import pytest

from keras_attnvariants.utils.files import DamagedFolderError
from tests.recipes.conftest import module_of

cards = module_of("model_cards")
card_of = cards.card_of

CARD = cards.Card(
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


def test_a_card_that_is_none_is_named(tmp_path):
    (tmp_path / "card.json").write_text(json.dumps({"name": "me/base/xx-yy"}))
    with pytest.raises(DamagedFolderError, match="card.json is not a valid Card"):
        card_of(tmp_path)
    with pytest.raises(DamagedFolderError, match="card.json is missing"):
        card_of(tmp_path / "nothing")
