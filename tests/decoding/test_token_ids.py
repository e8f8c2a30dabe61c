"""Token ids: conversion and counting."""

import numpy as np
import pytest
from keras import ops

from keras_attnvariants.decoding.token_ids import count_tokens
from keras_attnvariants.decoding.token_ids import to_token_ids


@pytest.mark.parametrize("ids", [[[1, 2]], np.array([[1, 2]], "int64")])
def test_integers_of_two_axes_become_int32(ids):
    found = to_token_ids("ids", ids)
    assert "int32" in str(found.dtype)
    assert ops.convert_to_numpy(found).tolist() == [[1, 2]]


@pytest.mark.parametrize("ids", [[1, 2], [[0.5]], np.zeros((1, 2, 3), "int32")])
def test_others_are_refused(ids):
    with pytest.raises(ValueError, match=r"`ids` must be .* Received: shape \("):
        to_token_ids("ids", ids)


def test_padding_does_not_count():
    ids = np.array([[[5, 6, 0]], [[0, 0, 0]]], "int32")
    found = count_tokens(ops.convert_to_tensor(ids), pad_id=0)
    assert ops.convert_to_numpy(found).tolist() == [[2], [0]]
