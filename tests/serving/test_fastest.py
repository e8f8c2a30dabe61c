"""The choice of a precision by measurement."""

import pytest

from keras_attnvariants.serving import fastest

PRECISIONS = ["float32", "bfloat16"]


@pytest.fixture
def faster(monkeypatch):
    """Makes a precision the fastest."""

    def make(best):
        seconds = {name: float(name != best) for name in PRECISIONS}
        monkeypatch.setattr(fastest, "shortest_seconds", lambda *arguments: seconds)

    return make


@pytest.mark.parametrize("best", PRECISIONS)
def test_the_precision_with_the_fastest_product_is_taken(faster, best):
    faster(best)
    assert fastest.fastest_precision() == best


@pytest.mark.parametrize("name", PRECISIONS)
def test_what_is_timed_is_a_product_of_the_dtype(name):
    assert fastest.timed_product(name)() == 512


def test_something_is_fastest_here():
    assert fastest.fastest_precision() in PRECISIONS
