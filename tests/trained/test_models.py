"""The models that the package contains are what their cards say."""

import dataclasses
import os
import re
import shutil
from pathlib import Path

import pytest

import keras_attnvariants as kav
from keras_attnvariants.trained.names import MODELS
from keras_attnvariants.trained.names import model_names
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.folders import check_folder
from tests.recipes.conftest import module_of
from tests.recipes.test_model_cards import CARD
from tests.recipes.test_model_cards import card_of
from tests.recipes.test_model_cards import cards
from tests.serving.tools import sign

pack_model = module_of("pack_model")

REPOSITORY = Path(__file__).parents[2]
# Largest size of all models in the wheel.
MOST_BYTES = 40_000_000
# The export of `recipes/train_models.py`, and the name of its model.
SERVED = REPOSITORY / "saved_models" / "en-de"
SERVED_NAME = "kav/hc-sa/tatoeba-en-de"
MOST_BYTES_SERVED = 12_000_000
# Largest difference in BLEU on other processors, which round differently.
TOLERANCE = 0.1

each_model = pytest.mark.parametrize("name", model_names())


@each_model
def test_the_folder_is_what_was_written(name):
    check_model(MODELS / name, name)


def check_model(folder: Path, name: str) -> None:
    """Fails unless a folder has a model of this name that is as its card says."""
    check_folder(folder, ("card.json", "README.md", "tokenizer.model"))
    card = card_of(folder)
    assert card.name == name
    assert (folder / "README.md").read_text("utf-8") == pack_model.page_of(card)
    assert card.data.test_sources_in_training == 0
    assert card.data.test_targets_in_training == 0
    model, tokenizer = kav.load_model(folder)
    assert model.count_params() == card.parameters <= 4_000_000
    assert tokenizer.vocabulary_size == model.vocabulary_size
    assert abs(card.scores[0].packed - card.scores[0].float32) <= 0.3
    assert not re.search(r"(^|[\s'\"])/\w+/", (folder / "card.json").read_text())


def test_all_models_fit_into_the_wheel():
    files = [path for path in MODELS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    notice = (REPOSITORY / "NOTICE").read_text("utf-8")
    for name in {card_of(MODELS / name).data.name for name in model_names()}:
        assert name in notice


def test_the_export_is_complete(tmp_path):
    files = [path for path in SERVED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES_SERVED
    kav.serving.verify(SERVED / "1")
    shutil.copytree(SERVED, tmp_path / "en-de", ignore=lambda *_: ["deploy"])
    again = tmp_path / "en-de" / "deploy"
    for path in kav.serving.write_deployment(again.with_name("1"), again):
        assert path.read_text() == (SERVED / path.relative_to(again.parent)).read_text()


def test_the_export_translates_like_its_model():
    examples = card_of(MODELS / SERVED_NAME).examples
    sources = [example.source for example in examples]
    found = kav.serving.SavedTranslator(SERVED).translate(sources)
    same = [
        text == example.translation
        for text, example in zip(found, examples, strict=True)
    ]
    assert len(same) > 10
    # The weights of the export are rounded to 8 bits again.
    assert sum(same) >= 0.8 * len(same)


def test_the_table_of_results_has_the_figures_of_the_cards():
    rows = (REPOSITORY / "docs" / "RESULTS.md").read_text("utf-8").splitlines()
    for name in model_names():
        card = card_of(MODELS / name)
        if (card.source, card.target) == ("en", "de"):
            start = f"| {card.variant} | {card.parameters:,} |"
            row = next(row for row in rows if row.startswith(start))
            page = pack_model.page_of(card)
            for figure in (
                r"^\| BLEU \| ([^|]+) \|",
                r"^\| chrF2 \| ([^|]+) \|",
                r"^- ([\d,]+) sentences and",
            ):
                [found] = re.findall(figure, page, re.MULTILINE)
                assert f"| {found} |" in row


def corpus_of(card: cards.Card) -> Path:
    """The folder of the corpus of a card, if it is at hand and the same."""
    default = REPOSITORY.parent / "shared" / "data"
    place = Path(os.environ.get("KAV_DATA", default)) / card.data.name
    if not place.is_dir():
        pytest.skip(f"needs the corpus, and KAV_DATA has no folder of it: {place}")
    return place


def check_bleu(folder: Path, card: cards.Card, data: Path) -> None:
    """Fails unless the model in a folder has the BLEU of a card on its test set."""
    corpus = kav.data.load_corpus(data, card.source, card.target)
    sources, references = corpus.read_lines("test")
    report = kav.evaluation.evaluate(folder, sources, references)
    assert report.scores[0].value == pytest.approx(card.bleu, abs=TOLERANCE)
    assert card.bleu == card.scores[0].packed


@pytest.mark.slow
@each_model
def test_the_bleu_of_the_card_comes_out_again(name):
    card = card_of(MODELS / name)
    check_bleu(MODELS / name, card, corpus_of(card))


@pytest.mark.slow
def test_the_export_has_the_bleu_of_its_model():
    card = card_of(MODELS / SERVED_NAME)
    corpus = kav.data.load_corpus(corpus_of(card), card.source, card.target)
    translate = kav.serving.SavedTranslator(SERVED).translate
    report = kav.evaluation.evaluate(translate, *corpus.read_lines("test"))
    assert report.scores[0].value == pytest.approx(card.bleu, abs=0.2)


@pytest.fixture
def small(tmp_path, corpus_folder):
    """A folder with a tiny model, and a card that has its true BLEU."""
    attention = kav.DotProductAttention(num_heads=2)
    tokenizer = kav.Tokenizer.train([corpus_folder / "train.xx"], vocabulary_size=40)
    model = kav.Transformer(
        40, 1, 8, 16, attention, attention, attention, max_length=32
    )
    folder = kav.save_model(model, tmp_path / "model", tokenizer)
    corpus = kav.data.load_corpus(corpus_folder, "xx", "yy", tmp_path / "cache")
    bleu = kav.evaluation.evaluate(folder, *corpus.read_lines("test")).scores[0].value
    return folder, bleu


def test_a_figure_that_no_longer_holds_fails(small, corpus_folder):
    folder, bleu = small

    def card(bleu: float) -> cards.Card:
        score = dataclasses.replace(CARD.scores[0], packed=bleu)
        return dataclasses.replace(CARD, bleu=bleu, scores=[score])

    check_bleu(folder, card(bleu), corpus_folder)
    with pytest.raises(AssertionError):
        check_bleu(folder, card(bleu + 1), corpus_folder)


@pytest.mark.parametrize(
    "file, old, new", [("card.json", "31.25", "39.25"), ("README.md", "31.25", "39.25")]
)
def test_a_card_and_a_page_that_differ_fail(small, tmp_path, file, old, new):
    model = kav.load_model(small[0]).model
    card = dataclasses.replace(CARD, parameters=model.count_params())
    folder = tmp_path / "packed"
    pack_model.write_with_card(small[0], card, folder)
    check_model(folder, card.name)
    text = (folder / file).read_text("utf-8")
    (folder / file).write_text(text.replace(old, new), "utf-8")
    with pytest.raises(DamagedFolderError, match=f"{file} is not what was written"):
        check_model(folder, card.name)
    sign(folder)
    with pytest.raises(AssertionError):
        check_model(folder, card.name)
