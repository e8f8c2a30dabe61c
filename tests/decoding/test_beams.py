"""Choosing among hypotheses, and the attention from which they were predicted."""

import numpy as np
from keras import ops

from keras_attnvariants.decoding.beams import Beams
from keras_attnvariants.decoding.beams import collect_alignments
from keras_attnvariants.decoding.beams import select


def test_selected_hypotheses_keep_their_paths():
    paths = np.arange(12, dtype="int32").reshape(2, 3, 2)
    beams = Beams(ops.zeros((2, 3)), {"ids": ops.convert_to_tensor(paths)})
    choice = np.array([[2, 0], [1, 1]], "int32")
    log_probs = ops.convert_to_tensor(np.array([[-1.0, -2.0], [-3.0, -3.0]]))
    found = select(beams, log_probs, ops.convert_to_tensor(choice))
    assert found.log_probs is log_probs
    expected = np.take_along_axis(paths, choice[:, :, None], axis=1)
    np.testing.assert_array_equal(ops.convert_to_numpy(found.paths["ids"]), expected)


def test_alignments_are_those_of_the_beams_that_predicted():
    rng = np.random.default_rng(0)
    weights = rng.random((2, 4, 3, 5)).astype("float32")  # [B, T, K, S]
    beams = rng.integers(0, 3, (2, 2, 4)).astype("int32")  # [B, N, T]
    is_token = rng.random((2, 2, 4)) < 0.7
    tensors = map(ops.convert_to_tensor, (weights, beams, is_token))
    found = ops.convert_to_numpy(collect_alignments(*tensors))
    for b, n, t in np.ndindex(2, 2, 4):
        expected = weights[b, t, beams[b, n, t]] * is_token[b, n, t]
        np.testing.assert_array_equal(found[b, n, t], expected)
