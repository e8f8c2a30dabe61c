"""Log probabilities of given targets."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import score
from keras_attnvariants.decoding import score_tokens
from tests.decoding.toys import BOS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import numpy
from tests.decoding.toys import random_sources
from tests.decoding.toys import search


def test_sums_over_the_target_and_its_eos():
    model = RecurrentModel()
    source = random_sources(1)
    logits = ops.convert_to_numpy(
        model({"source_ids": source, "target_ids": np.array([[BOS, 5, 7]])})
    )[0].astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = log_probs[0, 5] + log_probs[1, 7] + log_probs[2, EOS]
    found, lengths = score(model, source, np.array([[5, 7, PAD, PAD]]))
    np.testing.assert_allclose(ops.convert_to_numpy(found), [expected], rtol=1e-5)
    assert ops.convert_to_numpy(lengths).tolist() == [3]


def test_empty_target_is_eos_alone():
    model, source = RecurrentModel(), random_sources(2)
    logits = model({"source_ids": source, "target_ids": np.full((2, 1), BOS)})
    expected = ops.log_softmax(logits)[:, 0, EOS]
    for width in (0, 3):
        found, lengths = score(model, source, np.zeros((2, width), "int32"))
        np.testing.assert_allclose(
            ops.convert_to_numpy(found), ops.convert_to_numpy(expected), rtol=1e-5
        )
        assert ops.convert_to_numpy(lengths).tolist() == [1, 1]


def test_wrong_targets_are_named():
    model, source = RecurrentModel(), random_sources(2)
    with pytest.raises(ValueError, match="`target_ids` .* Received: shape"):
        score(model, source, np.array([5, 7]))


@pytest.fixture(scope="module")
def targets():
    return np.array([[5, 7, PAD, PAD], [4, 5, 6, 8], [PAD] * 4], "int32")


def test_every_token_has_its_log_probability(targets):
    model, sources = RecurrentModel(), random_sources(3)
    found = numpy(score_tokens(model, sources, targets, k=9))
    bos = np.full((3, 1), BOS, "int32")
    inputs = {"source_ids": sources, "target_ids": np.hstack([bos, targets])}
    logits = ops.convert_to_numpy(model(inputs)).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    assert found.ids.tolist()[:2] == [[5, 7, EOS, PAD, PAD], [4, 5, 6, 8, EOS]]
    assert found.lengths.tolist() == [3, 5, 1]
    for row, length in enumerate(found.lengths):
        for position in range(5):
            values = log_probs[row, position]
            ids = found.best_ids[row, position]
            if position >= length:
                assert found.log_probs[row, position] == 0
                assert (ids == PAD).all()
                assert (found.best_log_probs[row, position] == 0).all()
                continue
            token = found.ids[row, position]
            assert found.log_probs[row, position] == pytest.approx(
                values[token], abs=1e-4
            )
            assert ids.tolist() == np.argsort(-values).tolist()
            np.testing.assert_allclose(
                found.best_log_probs[row, position], values[ids], atol=1e-4
            )
    total, _ = score(model, sources, targets)
    np.testing.assert_allclose(found.log_probs.sum(1), np.asarray(total), atol=1e-4)


def test_no_words_or_too_many(targets):
    model, sources = RecurrentModel(), random_sources(3)
    assert numpy(score_tokens(model, sources, targets)).best_ids is None
    with pytest.raises(ValueError, match="`k` .* Received: 10"):
        score_tokens(model, sources, targets, k=10)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_search_returns_the_same_log_probabilities(beam_size):
    model, sources = RecurrentModel(seed=2), random_sources(12)
    found = search(
        model,
        sources,
        beam_search,
        beam_size=beam_size,
        n_best=beam_size,
        max_length=9,
        return_token_log_probs=True,
    )
    for rank in range(beam_size):
        ids = found.ids[:, rank]
        expected = score_tokens(model, sources, np.where(ids == EOS, PAD, ids)[:, :-1])
        np.testing.assert_allclose(
            found.token_log_probs[:, rank], np.asarray(expected.log_probs), atol=1e-4
        )
    np.testing.assert_allclose(
        found.token_log_probs.sum(axis=-1), found.log_probs, atol=1e-4
    )
