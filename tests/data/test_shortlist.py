"""Shortlists: target tokens that the tokens of a source make likely."""

import numpy as np
import pytest

from keras_attnvariants.data import Shortlist
from keras_attnvariants.data import shortlist as module
from keras_attnvariants.data.shortlist import lexical_model

SIZE = 30


def corpus(count: int = 400):
    """Sentences whose tokens are translated one by one, `s` to `29 - s`, in any order.

    Every target also has the token 3, which no source token alone explains.
    """
    rng = np.random.default_rng(0)
    for _ in range(count):
        source = rng.integers(4, 26, rng.integers(1, 7))
        target = rng.permutation([*(29 - source), 3])
        yield source.tolist(), target.tolist()


def test_a_translation_is_found_among_what_co_occurs():
    pairs = list(corpus())
    shortlist = Shortlist.learn(pairs, SIZE, SIZE, candidates=2, common=3)
    for source in range(4, 26):
        assert 29 - source in shortlist.by_source[source]
    assert shortlist.common[0] == 3 and shortlist.common.shape == (3,)
    assert (shortlist.by_source[26:] == -1).all()
    assert (shortlist.by_source[:4] == -1).all()


def test_no_more_columns_than_are_needed():
    pairs = [([4, 5], [6, 7]), ([4], [8])]
    shortlist = Shortlist.learn(pairs, SIZE, SIZE, candidates=10**9)
    assert shortlist.by_source.shape == (SIZE, 3)
    assert sorted(shortlist.by_source[4]) == [6, 7, 8]


def test_the_model_is_that_of_a_plain_computation(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    pairs = list(corpus(300))
    keys, weights = lexical_model(pairs, SIZE, iterations=2)
    table = np.ones((SIZE, SIZE))
    for _ in range(2):
        counts = np.zeros((SIZE, SIZE))
        for source, target in pairs:
            for token in target:
                total = sum(table[s, token] for s in source)
                for s in source:
                    counts[s, token] += table[s, token] / total
        table = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
    expected = np.zeros((SIZE, SIZE))
    expected[np.divmod(keys, SIZE)] = weights
    np.testing.assert_allclose(expected, counts, atol=1e-9)


def test_a_file_holds_the_shortlist(tmp_path):
    shortlist = Shortlist.learn(list(corpus(20)), SIZE, SIZE, 3, 5, 1)
    shortlist.save(tmp_path / "list.npz")
    loaded = Shortlist.load(tmp_path / "list.npz")
    np.testing.assert_array_equal(loaded.common, shortlist.common)
    np.testing.assert_array_equal(loaded.by_source, shortlist.by_source)
    loaded.check(SIZE, SIZE)
    with pytest.raises(ValueError, match=r"fit the vocabularies of the model \(31 "):
        loaded.check(SIZE + 1, SIZE)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "list.npz"
    with pytest.raises(FileNotFoundError):
        Shortlist.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is not a shortlist"):
        Shortlist.load(path)
    np.savez(path, common=np.zeros(2, "int32"))
    with pytest.raises(ValueError, match="is not a shortlist"):
        Shortlist.load(path)
    np.savez(path, common=np.zeros(2, "int32"), by_source=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="is not a shortlist"):
        Shortlist.load(path)


def test_a_corpus_without_tokens_is_refused():
    with pytest.raises(ValueError, match="`pairs` must have tokens"):
        Shortlist.learn([], SIZE, SIZE)
