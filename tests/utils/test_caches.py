from pathlib import Path

from keras_attnvariants.utils.caches import default_cache


def test_the_place_of_the_cache(monkeypatch):
    monkeypatch.setenv("KAV_CACHE", "/somewhere")
    assert default_cache() == Path("/somewhere")
    monkeypatch.delenv("KAV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/else")
    assert default_cache() == Path("/else/keras_attnvariants")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "keras_attnvariants"
