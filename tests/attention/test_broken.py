"""Broken layers are caught by the conformance tests that are meant for them."""

import pytest

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.attention import DotProductAttention
from tests import reference
from tests.attention.broken import BROKEN
from tests.attention.broken import Broken
from tests.attention.checks import caught_by
from tests.attention.checks import checks
from tests.attention.checks import fails
from tests.attention.checks import registered

# Where every operation is compiled, they take long and show nothing new.
SPEED = pytest.mark.slow if backend.name() == "jax" else ()


@pytest.mark.parametrize("name", [pytest.param(name, marks=SPEED) for name in BROKEN])
def test_broken_layers_are_caught(name):
    layer = BROKEN[name]
    with registered(layer) as case:
        known = checks(layer)
        missed = [test for test in layer.caught_by if not fails(known[test], case)]
    assert layer.caught_by
    assert not missed, "these tests pass"


class Sound(DotProductAttention):
    """A layer without a flaw."""


@pytest.mark.slow
@pytest.mark.parametrize("role", ["encoder", "decoder", "cross"])
def test_a_sound_layer_passes(role):
    assert caught_by(Broken(Sound, role, {"num_heads": 4}, "float32", ())) == []


def test_nothing_stays_registered():
    before = set(attention.variants()), set(reference.REFERENCES)
    with registered(BROKEN["WrongScale"]) as case:
        assert case.variant in attention.variants()
    assert (set(attention.variants()), set(reference.REFERENCES)) == before
    assert "WrongScale" not in before[0]
