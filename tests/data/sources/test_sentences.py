"""Multi30k and Tatoeba, from small files of their layouts."""

import gzip

from keras_attnvariants.data import load_corpus
from tests.data.sources import packing
from tests.data.sources.packing import pairs


def test_multi30k(put, cache):
    names = {
        "train": "train",
        "val": "validation",
        "test_2016_flickr": "test2016",
        "test_2017_flickr": "test2017",
        "test_2017_mscoco": "testcoco2017",
        "test_2018_flickr": "test2018",
    }
    for name in names:
        for language in ("de", "en"):
            content = gzip.compress(packing.text(f"{name} {language}"))
            put("multi30k", **{f"{name}.{language}.gz": content})
    corpus = load_corpus("multi30k", "en", "de", cache_dir=cache)
    assert pairs(corpus) == {
        split: [(f"{name} en", f"{name} de")] for name, split in names.items()
    }


def test_multi30k_in_czech_has_no_tests_of_2017(put, cache):
    for name in ("train", "val", "test_2016_flickr", "test_2018_flickr"):
        for language in ("cs", "en"):
            put(
                "multi30k",
                **{f"{name}.{language}.gz": gzip.compress(packing.text("a"))},
            )
    corpus = load_corpus("multi30k", "en", "cs", cache_dir=cache)
    assert set(corpus.splits) == {"train", "validation", "test2016", "test2018"}


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
