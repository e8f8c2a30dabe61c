"""Several corpora as one, with tags and with shares of each."""

import numpy as np
import pytest

from keras_attnvariants.data import BatchPlan
from keras_attnvariants.data import Mixture
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


def test_a_mixture_is_not_mixed_again(corpora, tmp_path):
    mixture = mix_corpora(corpora, cache_dir=tmp_path)
    with pytest.raises(ValueError, match="mix all of them at once. Received: the mix"):
        mix_corpora([mixture, corpora[0]])


SIZES = 300, 50, 7


def plan(mixture, seed=3, **options):
    random = np.random.default_rng(0)
    lengths = random.integers(1, 20, (2, sum(SIZES)))
    return BatchPlan(*lengths, batch_tokens=128, seed=seed, mixture=mixture, **options)


def shown(plan, epochs, start=0):
    """The number of times that each pair occurs in some epochs."""
    counts = np.zeros(sum(SIZES), int)
    for index in range(start * plan.num_batches, (start + epochs) * plan.num_batches):
        np.add.at(counts, plan.batch(index)[1], 1)
    return counts


def by_corpus(counts):
    return np.split(counts, np.cumsum(SIZES)[:-1])


@pytest.mark.parametrize(
    ("mixture", "expected"),
    [
        (Mixture((100, 400)), [0.2, 0.8]),
        (Mixture((100, 400), temperature=2), [1 / 3, 2 / 3]),
        (Mixture((100, 400), temperature=1e9), [0.5, 0.5]),
        (Mixture((100, 400), weights=(3, 1)), [0.75, 0.25]),
    ],
    ids=str,
)
def test_shares(mixture, expected):
    np.testing.assert_allclose(mixture.shares((100, 400)), expected, atol=1e-6)


def test_a_corpus_without_usable_pairs_has_no_share():
    mixture = Mixture((5, 5, 5), weights=(1, 1, 2))
    np.testing.assert_allclose(mixture.shares((5, 0, 5)), [1 / 3, 0, 2 / 3])


def test_without_weights_every_pair_is_seen_once():
    assert set(shown(plan(Mixture(SIZES)), 1)) == {1}


@pytest.mark.parametrize("options", [{"weights": (1, 1, 2)}, {"temperature": 5}])
def test_epochs_have_the_shares_and_pairs_take_turns(options):
    mixture = Mixture(SIZES, **options)
    found = plan(mixture)
    for epochs in (1, 9):
        counts = shown(found, epochs)
        assert counts.sum() == epochs * sum(SIZES) == epochs * found.num_pairs
        totals = [part.sum() for part in by_corpus(counts)]
        expected = mixture.shares(SIZES) * counts.sum()
        # An epoch rounds once in each bucket.
        assert np.abs(totals - expected).max() <= epochs * len(found.shapes)
    for part, size in zip(by_corpus(counts), SIZES, strict=True):
        # Buckets round separately; within a bucket no pair is two times behind another.
        assert part.max() - part.min() <= 2 + 9 * len(found.shapes) / size


def test_batches_depend_on_the_seed_and_their_number_only():
    mixture = Mixture(SIZES, temperature=3)
    one, two, other = plan(mixture), plan(mixture), plan(mixture, seed=4)
    last = 3 * one.num_batches
    for index in (last, 5, last - 1, 0):  # in any order
        np.testing.assert_array_equal(one.batch(index)[1], two.batch(index)[1])
    assert any(
        one.batch(index)[1].tolist() != other.batch(index)[1].tolist()
        for index in range(one.num_batches)
    )


def test_validation_has_every_pair_once():
    assert set(shown(plan(Mixture(SIZES, weights=(1, 1, 1)), seed=None), 1)) == {1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "must not be below 1"),
        ({"weights": (1, 2)}, "one entry for each corpus. Received: 2 for 3"),
        ({"weights": (1, 0, 2)}, "`weights` must be a positive number"),
        ({"weights": (1, 1, 2), "temperature": 2}, "give one of them"),
    ],
    ids=str,
)
def test_wrong_mixtures(options, message):
    with pytest.raises(ValueError, match=message):
        Mixture(SIZES, **options)
