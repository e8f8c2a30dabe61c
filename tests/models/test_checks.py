"""Checks of token ids and of lengths."""

import pytest
from keras import ops

from keras_attnvariants.models.checks import check_length
from keras_attnvariants.models.checks import check_token_ids


@pytest.mark.parametrize("value", [-1, 9, 100])
def test_ids_outside_the_vocabulary_are_named(value):
    check_token_ids(9, pad_id=0, eos_id=8)
    with pytest.raises(ValueError, match=f"`eos_id`.*9 tokens. Received: {value}"):
        check_token_ids(9, pad_id=0, eos_id=value)


def test_lengths_are_bounded_where_they_are_known():
    check_length("source_ids", 8, 8)
    check_length("source_ids", None, 8)
    check_length("source_ids", ops.convert_to_tensor(9), 8)
    with pytest.raises(ValueError, match="`source_ids`.*at most 8.*Received: 9"):
        check_length("source_ids", 9, 8)
