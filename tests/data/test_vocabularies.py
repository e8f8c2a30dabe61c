"""Vocabularies are learned once, and again if anything differs or is damaged."""

import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.vocabularies import FILE
from keras_attnvariants.data.vocabularies import learn_vocabulary
from tests.data.toy import spoil

SIZE = 96


@pytest.fixture
def learned(monkeypatch):
    """The sizes and options of the vocabularies that were not in the cache."""
    train, calls = Tokenizer.train, []

    def remember(files, size, **options):
        calls.append((size, options))
        return train(files, size, **options)

    monkeypatch.setattr(Tokenizer, "train", remember)
    return calls


def test_a_vocabulary_is_learned_once(toy_folder, cache, learned):
    corpus = load_corpus(toy_folder, "en", "de", cache)
    first = learn_vocabulary(corpus, SIZE)
    again = learn_vocabulary(load_corpus(toy_folder, "en", "de", cache), SIZE)
    assert learned == [(SIZE, {"may_shrink": True})]
    expected = Tokenizer.train(corpus.files("train"), SIZE).model_bytes
    assert first.model_bytes == again.model_bytes == expected


def test_other_options_and_other_text_are_learned_from(toy_folder, cache, learned):
    corpus = load_corpus(toy_folder, "en", "de", cache)
    found = [
        learn_vocabulary(corpus, SIZE),
        learn_vocabulary(corpus, SIZE - 8),
        learn_vocabulary(corpus, SIZE, model_type="bpe"),
    ]
    with (toy_folder / "train.de").open("a") as german:
        german.write("noch ein Satz\n")
    with (toy_folder / "train.en").open("a") as english:
        english.write("one more sentence\n")
    found.append(learn_vocabulary(load_corpus(toy_folder, "en", "de", cache), SIZE))
    assert len(learned) == len({tokenizer.sha256 for tokenizer in found}) == 4


@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_vocabulary_is_learned_again(toy_folder, cache, learned, damage):
    corpus = load_corpus(toy_folder, "en", "de", cache)
    first = learn_vocabulary(corpus, SIZE)
    (path,) = corpus.folder.glob(f"vocabularies/*/{FILE}")
    spoil(path, damage)
    assert learn_vocabulary(corpus, SIZE).sha256 == first.sha256
    assert len(learned) == 2


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_shrinks_to_what_the_text_has(
    toy_folder, cache, capsys, model_type
):
    corpus = load_corpus(toy_folder, "en", "de", cache)
    small = learn_vocabulary(corpus, 5000, may_shrink=True, model_type=model_type)
    assert SIZE < small.vocabulary_size < 5000
    line = capsys.readouterr().err
    assert f"{small.vocabulary_size:,} tokens instead of 5,000" in line
    # From the cache, too.
    message = f"--vocabulary-size. to at most {small.vocabulary_size}.*Received: "
    with pytest.raises(ValueError, match=message):
        learn_vocabulary(corpus, 5000, model_type=model_type)
    fitting = learn_vocabulary(corpus, SIZE, may_shrink=True, model_type=model_type)
    expected = Tokenizer.train(corpus.files("train"), SIZE, model_type=model_type)
    assert fitting.model_bytes == expected.model_bytes


def test_a_size_that_was_given_and_is_too_large_is_refused(toy_folder, cache):
    corpus = load_corpus(toy_folder, "en", "de", cache)
    with pytest.raises(ValueError, match="--vocabulary-size. to at most [0-9]+") as e:
        learn_vocabulary(corpus, 5000)
    assert "\n" not in str(e.value)
