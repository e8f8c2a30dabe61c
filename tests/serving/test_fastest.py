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
    monkeypatch.setattr(fastest, "sums_integers_exactly", lambda: True)
    faster(best)
    assert fastest.fastest_precision() == best


@pytest.mark.parametrize(("bits", "exact"), [(16, False), (32, True)])
def test_integers_that_overflow_are_not_taken(monkeypatch, faster, bits, exact):
    def product(rows, *others, **options):
        """As oneDNN without VNNI: of bytes without a sign, added in pairs."""
        pairs = 2 * 127 * (tf.cast(rows, "int64")[:, ::2] + 128)
        pairs = tf.minimum(pairs, 2 ** (bits - 1) - 1)
        sums = tf.reduce_sum(pairs, axis=1, keepdims=True) - 128 * 127 * 512
        return tf.cast(sums, "float32") / 127

    monkeypatch.setattr(backend, "has_onednn_product", lambda: True)
    monkeypatch.setattr(backend, "onednn_product", product)
    faster("int8")
    assert (fastest.fastest_precision() == "int8") is exact


def test_integers_without_onednn_are_not_taken(monkeypatch, faster):
    monkeypatch.setattr(backend, "has_onednn_product", lambda: False)
    faster("int8")
    assert fastest.fastest_precision() != "int8"


@pytest.mark.skipif(not backend.has_onednn_product(), reason="no oneDNN here")
def test_the_product_of_integers_is_right():
    rows = tf.fill((64, 512), tf.constant(64, "int8"))
    found = fastest.product_of("int8")(rows)
    tf.debugging.assert_near(found, tf.fill((64, 8192), 512 * 64.0), rtol=1e-3)


@pytest.mark.parametrize("name", PRECISIONS[:2])
def test_what_is_timed_is_a_product_of_the_dtype(name):
    assert fastest.timed_product(name)() == 512


def test_something_is_fastest_here():
    assert fastest.fastest_precision() in PRECISIONS
