"""The choice of a precision by measurement."""

import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.serving import fastest

PRECISIONS = ["float32", "bfloat16", "int8"]


@pytest.fixture
def faster(monkeypatch):
    """Makes a precision the fastest."""

    def make(best):
        seconds = {name: float(name != best) for name in PRECISIONS}
        monkeypatch.setattr(fastest, "shortest_seconds", lambda *arguments: seconds)

    return make


@pytest.mark.parametrize("best", PRECISIONS)
def test_the_precision_with_the_fastest_product_is_taken(monkeypatch, faster, best):
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: True)
    faster(best)
    assert fastest.fastest_precision() == best


def test_integers_that_are_not_exact_are_not_taken(monkeypatch, faster):
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: False)
    faster("int8")
    assert fastest.fastest_precision() != "int8"


@pytest.mark.skipif(not backend.is_onednn_exact(), reason="not on this processor")
def test_the_product_of_integers_is_right():
    rows = tf.fill((64, 512), tf.constant(64, "int8"))
    found = fastest.product_of("int8")(rows)
    tf.debugging.assert_near(found, tf.fill((64, 8192), 512 * 64.0), rtol=1e-3)


@pytest.mark.parametrize("name", PRECISIONS[:2])
def test_what_is_timed_is_a_product_of_the_dtype(name):
    assert fastest.timed_product(name)() == 512


def test_something_is_fastest_here():
    assert fastest.fastest_precision() in PRECISIONS
