"""Log probabilities of given targets."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding import score
from tests.decoding.toys import BOS
from tests.decoding.toys import EOS
from tests.decoding.toys import PAD
from tests.decoding.toys import RecurrentModel
from tests.decoding.toys import random_sources


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
