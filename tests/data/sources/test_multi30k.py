"""Multi30k, from files as it publishes them."""

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
