"""Tatoeba, from a small archive of its layout."""

from keras_attnvariants.data import load_corpus
from tests.data.sources import packing
from tests.data.sources.packing import pairs


def test_tatoeba(put, cache):
    german = [f"Satz {i // 2}" for i in range(600)]
    english = [f"sentence {i}" for i in range(600)]
    archive = packing.zip_bytes(
        {
            "README": b"",
            "Tatoeba.de-en.de": packing.text(*german),
            "Tatoeba.de-en.en": packing.text(*english),
        }
    )
    put("tatoeba", **{"de-en.txt.zip": archive})
    splits = pairs(load_corpus("tatoeba", "de", "en", cache_dir=cache))
    assert sorted(p for part in splits.values() for p in part) == sorted(
        zip(german, english, strict=True)
    )
    sides = [{german for german, _ in part} for part in splits.values()]
    assert not sides[0] & sides[1] | sides[0] & sides[2] | sides[1] & sides[2]
