"""Several corpora as one, with tags."""

import numpy as np
import pytest

from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs

TAGS = "<a>", "<2de>"


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """A larger one without validation, and a smaller one."""
    folder, cache = tmp_path_factory.mktemp("corpora"), tmp_path_factory.mktemp("cache")
    pairs = toy_pairs(130)
    write_pairs(folder / "one", "train", pairs[:90])
    write_pairs(folder / "one", "validation", pairs[90:92])
    write_pairs(folder / "two", "train", pairs[92:112])
    write_pairs(folder / "two", "validation", pairs[112:115])
    return [load_corpus(folder / name, "en", "de", cache) for name in ("one", "two")]


@pytest.fixture(scope="module")
def mixed(corpora, tmp_path_factory):
    cache = tmp_path_factory.mktemp("mixed")
    return mix_corpora(corpora, temperature=4, tags=TAGS, cache_dir=cache)


def test_training_pairs_lie_one_corpus_after_another(corpora, mixed):
    sources, targets = mixed.read_lines("train")
    expected = [corpus.read_lines("train") for corpus in corpora]
    assert sources == [
        f"{tag} {line}"
        for tag, (lines, _) in zip(TAGS, expected, strict=True)
        for line in lines
    ]
    assert targets == expected[0][1] + expected[1][1]
    assert mixed.mixture.sizes == (90, 20)
    assert "one: " in mixed.report and "two: " in mixed.report


def test_validation_pairs_take_turns(mixed):
    sources, targets = mixed.read_lines("validation")
    tags = [source.split()[0] for source in sources]
    assert tags == ["<a>", "<2de>", "<a>", "<2de>", "<2de>"]
    numbers = [line.split()[-1] for line in targets]
    assert [source.split()[-1] for source in sources] == numbers


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_tag_is_one_piece(mixed, model_type):
    files = mixed.files("train")
    tokenizer = Tokenizer.train(files, 70, model_type=model_type, tags=mixed.tags)
    assert tokenizer.tags == TAGS
    pieces, plain = tokenizer.split(["<2de> the cat sees", "the cat sees"])
    assert pieces == ["▁<2de>", *plain]
    # The graph of an exported model splits text in the same way.
    ids = tokenizer.tf_tokenizer().tokenize(["<2de> the cat sees"]).to_list()
    assert ids == tokenizer.encode(["<2de> the cat sees"])
    assert Tokenizer.train(files, 70).tags == ()


def test_batches_show_the_smaller_corpus_more_often(mixed, tmp_path):
    tokenizer = Tokenizer.train(mixed.files("train"), 70, tags=mixed.tags)
    tokens = TokenizedCorpus(mixed, tokenizer, tmp_path)
    tag = tokenizer.encode(["<2de>"])[0][0]
    batches = tokens.training_dataset(batch_tokens=400).take(tokens.num_batches(400))
    seen = [np.sum(inputs["source_ids"][:, 0] == tag) for inputs, _, _ in batches]
    share = mixed.mixture.shares((90, 20))[1]
    assert abs(sum(seen) - share * 110) <= 3
    assert len(list(tokens.validation_dataset(batch_tokens=400))) > 0


@pytest.mark.parametrize("tag", ["two words", "<a,b>", "▁a", "ﬁ"])
def test_a_tag_must_be_one_word(corpora, tag):
    with pytest.raises(ValueError, match="A tag must be one word"):
        mix_corpora(corpora, tags=["", tag])


def test_tags_must_be_as_many_as_the_corpora(corpora):
    with pytest.raises(ValueError, match="Received: 1 for 2 corpora"):
        mix_corpora(corpora, tags=["<a>"])
    with pytest.raises(ValueError, match="at least one"):
        mix_corpora([])
