"""SentencePiece models with other ids split texts as before."""

import random

import numpy as np
import pytest
import sentencepiece

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import sentencepiece_models
from tests.foreign import folders

ODD = [
    "aß möse ☃",
    "  two  spaces ",
    "QX zebra 🙂",
    "the\tman",
    "ﬁne ½ Ａ",
    "naive é 東京",
]


def sentences(text):
    """Its lines, and random ones of its words."""
    rng, words = random.Random(0), text.split()
    return [*text.splitlines(), *(" ".join(rng.choices(words, k=6)) for _ in range(40))]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_two_models_over_one_vocabulary(kind):
    texts = folders.ENGLISH, folders.GERMAN
    models = [folders.subwords(text, 70, model_type=kind) for text in texts]
    pieces = [*sentencepiece_models.SPECIAL, ">>deu<<", *folders.pieces(*models)]
    sides = [sentencepiece_models.with_pieces(model, pieces) for model in models]
    tokenizer = Tokenizer.for_sides(*sides)
    ids = {piece: i for i, piece in enumerate(pieces)}
    pairs = zip((tokenizer, tokenizer.target), models, texts, strict=True)
    for one, model, text in pairs:
        before = sentencepiece.SentencePieceProcessor(model_proto=model)
        found = sentences(text) + ODD
        expected = before.encode(found, out_type=str)
        assert one.encode(found) == [[ids.get(p, 1) for p in row] for row in expected]
        in_graph = one.tf_tokenizer().tokenize(found).to_list()
        assert in_graph == one.encode(found)
    # Each of several unknown characters in a row is one that the vocabulary may have.
    assert tokenizer.split(["öß"]) == [["▁", "ö", "ß"]]
    # A model may predict what only sources have.
    only_source = next(p for p in pieces[5:] if p not in folders.pieces(models[1]))
    word = tokenizer.decode([[ids[only_source]]])
    assert word == [only_source.replace("▁", " ").strip()]
    assert tokenizer.split([">>deu<< a house"])[0][:2] == ["▁>>deu<<", "▁a"]
    assert tokenizer.tags == (">>deu<<",)


def test_what_is_not_to_be_used():
    model = folders.subwords(folders.ENGLISH)
    pieces = [*sentencepiece_models.SPECIAL, *folders.pieces(model)]
    without = sentencepiece_models.with_pieces(model, pieces, {"▁house"})
    before, after = Tokenizer.adopt(model), Tokenizer(without)
    assert "▁house" in before.split(["the house"])[0]
    assert "▁house" not in after.split(["the house"])[0]
    assert after.decode(after.encode(["the house"])) == ["the house"]


@pytest.mark.parametrize("length", [1, 127, 128, 70_000])
def test_two_models_in_a_file_are_taken_apart(length):
    source, target = folders.subwords(folders.ENGLISH), bytes(range(256)) * 300
    target = target[:length]
    joined = sentencepiece_models.joined(source, target)
    assert sentencepiece_models.parts(joined) == (source, target)
    assert sentencepiece_models.parts(source) == (source, None)
    assert sentencepiece_models.joined(source, source) == source


def test_other_programs_read_the_model_of_sources():
    models = [Tokenizer.adopt(folders.subwords(t)) for t in (folders.ENGLISH, "a b c")]
    both = Tokenizer.for_sides(*(one.model_bytes for one in models))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=both.model_bytes)
    assert theirs.encode("the house") == both.encode(["the house"])[0]
    again = Tokenizer.load(both.model_bytes)
    assert again.sha256 == both.sha256 != models[0].sha256
    assert again.target.pieces == models[1].pieces
    assert np.shape(again.decode([[4, 5]])) == (1,)


def test_what_is_no_model_is_left_to_the_reader():
    assert sentencepiece_models.parts(b"nothing") == (b"nothing", None)
    with pytest.raises(ValueError, match="must be a SentencePiece model"):
        sentencepiece_models.with_pieces(b"nothing", ["<pad>"])
