"""Precision is chosen by measurement."""

import pytest

from keras_attnvariants.training import faster_precision
from keras_attnvariants.training import precision


@pytest.mark.parametrize(
    ("bfloat16", "expected"), [(0.5, "mixed_bfloat16"), (0.9, "float32")]
)
def test_precision_is_the_faster_one(bfloat16, expected, monkeypatch):
    seconds = {"bfloat16": bfloat16, "float32": 1.0}
    monkeypatch.setattr(precision, "shortest_seconds", lambda functions: seconds)
    assert faster_precision() == expected


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_timed_is_a_product_of_the_dtype(dtype):
    assert precision.square_product(dtype)() == 512
