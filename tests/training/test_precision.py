"""Precision is chosen by measurement."""

import pytest

from keras_attnvariants.training import faster_precision
from keras_attnvariants.training import precision


@pytest.mark.parametrize(
    ("bfloat16", "expected"), [(0.5, "mixed_bfloat16"), (0.9, "float32")]
)
def test_precision_is_the_faster_one(bfloat16, expected, monkeypatch):
    seconds = {"bfloat16": bfloat16, "float32": 1.0}
    monkeypatch.setattr(precision, "product_seconds", lambda *dtypes: seconds)
    assert faster_precision() == expected


def test_products_are_timed():
    seconds = precision.product_seconds("float32", "bfloat16", size=8, rounds=2)
    assert set(seconds) == {"float32", "bfloat16"}
    assert all(0 < value < 60 for value in seconds.values())
