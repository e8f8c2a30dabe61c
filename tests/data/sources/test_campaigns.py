"""Corpora of evaluation campaigns, from small archives in their real layouts."""

import gzip

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data.sources import download
from tests.data.sources import packing


@pytest.fixture
def put(cache, monkeypatch):
    """Puts archives where downloads are looked for; the web is not there."""
    monkeypatch.setattr(download, "verify", lambda *_: None)

    def unreachable(*_, **__):
        raise OSError("no web in this test")

    monkeypatch.setattr(download.urllib.request, "urlopen", unreachable)

    def put(corpus, **archives):
        folder = cache / "downloads" / corpus
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in archives.items():
            (folder / name).write_bytes(content)

    return put


def pairs(corpus):
    return {
        split: list(zip(*corpus.read_lines(split), strict=True))
        for split in corpus.splits
    }


@pytest.mark.parametrize("name", ["multi30k", "iwslt16", "iwslt17", "tatoeba", "wmt14"])
def test_what_to_do_without_the_web(put, cache, name):
    advice = r"https://.* fails: no web.*put it into .*downloads/.*, or give"
    with pytest.raises(FetchError, match=advice):
        load_corpus(name, "de", "en", cache_dir=cache)


@pytest.mark.parametrize("name", ["iwslt16", "iwslt17", "wmt14"])
def test_english_is_one_side(put, cache, name):
    with pytest.raises(ValueError, match="must be English. Received: "):
        load_corpus(name, "de", "fr", cache_dir=cache)


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


def talk(campaign, *sets, pair="de-en"):
    files = {}
    for language in ("de", "en"):
        files[f"{pair}/train.tags.{pair}.{language}"] = packing.text(
            "<url>http</url>", f"<title>{language}</title>", f" train {language}", " a "
        )
        for name in sets:
            file = f"{pair}/{campaign}.TED.{name}.{pair}.{language}.xml"
            files[file] = packing.test_set(f"{name} {language}")
    return packing.tar_bytes(files)


def test_iwslt16(put, cache):
    inner = talk("IWSLT16", "dev2010", "tst2013", "tst2014")
    outer = packing.tar_bytes({"2016-01/texts/de/en/de-en.tgz": inner})
    put("iwslt16", **{"2016-01.tgz": outer})
    assert pairs(load_corpus("iwslt16", "en", "de", cache_dir=cache)) == {
        "train": [("train en", "train de"), ("a", "a")],
        "validation": [("tst2013 en", "tst2013 de")],
        "test": [("tst2014 en", "tst2014 de")],
        "dev2010": [("dev2010 en", "dev2010 de")],
    }


def test_iwslt17(put, cache):
    put(
        "iwslt17", **{"2017-01-trnted-de-en.tgz": talk("IWSLT17", "tst2010", "tst2015")}
    )
    for pair, language in (("de-en", "de"), ("en-de", "en")):
        file = f"{pair}/IWSLT17.TED.tst2017.{pair}.{language}.xml"
        content = packing.tar_bytes({file: packing.test_set(f"tst2017 {language}")})
        put("iwslt17", **{f"2017-01-ted-test-{pair}.tgz": content})
    assert pairs(load_corpus("iwslt17", "de", "en", cache_dir=cache)) == {
        "train": [("train de", "train en"), ("a", "a")],
        "validation": [("tst2015 de", "tst2015 en")],
        "test": [("tst2017 de", "tst2017 en")],
        "tst2010": [("tst2010 de", "tst2010 en")],
    }


def test_iwslt_without_its_validation_set(put, cache):
    put("iwslt17", **{"2017-01-trnted-de-en.tgz": talk("IWSLT17", "tst2010")})
    with pytest.raises(FetchError, match=r"no file IWSLT17\.TED\.tst2015"):
        load_corpus("iwslt17", "de", "en", cache_dir=cache)


def parallel(stem, other, count):
    return {
        f"{stem}.{language}": packing.text(*(f"{stem} {i}" for i in range(count)))
        for language in (other, "en")
    }


def test_wmt14(put, cache):
    put(
        "wmt14",
        **{
            "fr-en.tgz": packing.tar_bytes(parallel("europarl-v7.fr-en", "fr", 2)),
            "training-parallel-commoncrawl.tgz": packing.tar_bytes(
                parallel("commoncrawl.de-en", "de", 5)
                | parallel("commoncrawl.fr-en", "fr", 1)
            ),
            "training-parallel-nc-v9.tgz": packing.tar_bytes(
                parallel("training/news-commentary-v9.fr-en", "fr", 1)
            ),
            "test.tgz": packing.tar_bytes(
                {
                    f"test/newstest2013-src.{language}.sgm": packing.test_set(language)
                    for language in ("fr", "en")
                }
            ),
            "test-full.tgz": packing.tar_bytes(
                {
                    f"test-full/newstest2014-fren-src.{language}.sgm": packing.test_set(
                        language
                    )
                    for language in ("fr", "en")
                }
            ),
        },
    )
    splits = pairs(load_corpus("wmt14", "en", "fr", cache_dir=cache))
    assert [english for english, _ in splits["train"]] == [
        "europarl-v7.fr-en 0",
        "europarl-v7.fr-en 1",
        "commoncrawl.fr-en 0",
        "training/news-commentary-v9.fr-en 0",
    ]
    assert splits["validation"] == splits["test"] == [("en", "fr")]


def test_wmt16(put, cache):
    sets = {
        "dev.tgz": "dev/newsdev2016",
        "test.tgz": "test/newstest2016",
    }
    put(
        "wmt16",
        **{
            "training-parallel-ep-v8.tgz": packing.tar_bytes(
                parallel("training-parallel-ep-v8/europarl-v8.ro-en", "ro", 2)
            ),
            "en-ro.txt.zip": packing.zip_bytes(parallel("SETIMES.en-ro", "ro", 3)),
        },
        **{
            name: packing.tar_bytes(
                {
                    f"{stem}-roen-src.ro.sgm": packing.test_set("unu"),
                    f"{stem}-roen-ref.en.sgm": packing.test_set("one"),
                }
            )
            for name, stem in sets.items()
        },
    )
    splits = pairs(load_corpus("wmt16", "ro", "en", cache_dir=cache))
    assert len(splits["train"]) == 5
    assert splits["validation"] == splits["test"] == [("unu", "one")]
