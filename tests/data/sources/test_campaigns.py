"""IWSLT and WMT, from small archives of their layouts."""

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import load_corpus
from tests.data.sources import packing
from tests.data.sources.packing import pairs


@pytest.mark.parametrize("name", ["iwslt16", "iwslt17", "wmt14"])
def test_english_is_one_side(put, cache, name):
    with pytest.raises(ValueError, match="must be English. Received: "):
        load_corpus(name, "de", "fr", cache_dir=cache)


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
                    f"test-full/newstest2014-fren-{side}.sgm": packing.test_set(
                        side[-2:]
                    )
                    for side in ("src.fr", "ref.en")
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
