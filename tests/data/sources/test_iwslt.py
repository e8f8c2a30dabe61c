"""IWSLT, from small archives of their layouts."""

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import load_corpus
from tests.data.sources import packing
from tests.data.sources.packing import pairs


@pytest.mark.parametrize("name", ["iwslt16", "iwslt17"])
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
