"""The choice of a precision by measurement."""

import pytest

from keras_attnvariants.serving import fastest


@pytest.mark.parametrize("best", ["float32", "bfloat16"])
def test_the_precision_with_the_faster_product_is_taken(monkeypatch, best):
    monkeypatch.setattr(fastest, "seconds_of_product", lambda dtype: dtype != best)
    assert fastest.fastest_precision() == best


def test_products_are_measured():
    assert all(fastest.seconds_of_product(d) > 0 for d in ("float32", "bfloat16"))
