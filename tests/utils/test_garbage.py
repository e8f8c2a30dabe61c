"""A scope in which no garbage is searched for."""

import gc

import pytest

from keras_attnvariants.utils.garbage import no_collection
from keras_attnvariants.utils.garbage import no_explicit_collection
from keras_attnvariants.utils.garbage import staying


def test_the_search_goes_on_afterwards_whatever_happens():
    assert gc.isenabled()
    with pytest.raises(KeyError), no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_who_collects_by_hand_still_does():
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_libraries_ask_in_vain_and_only_for_a_while(monkeypatch):
    asked = []
    monkeypatch.setattr(gc, "collect", lambda generation=2: asked.append(generation))
    with pytest.raises(KeyError), no_explicit_collection():
        assert (gc.collect(), gc.collect(1)) == (0, 0)
        raise KeyError
    assert asked == []
    gc.collect()
    assert asked == [2]


def test_what_stays_is_not_searched_again():
    before = gc.get_freeze_count()
    try:
        with staying():
            kept = [[] for _ in range(1000)]
        assert gc.get_freeze_count() >= before + len(kept)
        assert gc.isenabled()
    finally:
        gc.unfreeze()
