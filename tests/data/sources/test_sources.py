"""Corpora that are fetched by name, from small archives of their layouts."""

import gzip
import re
from pathlib import Path

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import RegisteredCorpus
from keras_attnvariants.data import corpus_names
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import register_corpus
from keras_attnvariants.data import sources
from tests.data.sources import packing
from tests.data.sources.packing import pairs
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


def register(languages, write):
    origin = "https://example.org/made-up"
    register_corpus(
        RegisteredCorpus("made-up", languages, origin, 7, "public domain", write)
    )


@pytest.fixture
def calls(monkeypatch):
    """Registers the corpus "made-up" and collects the calls that fetch it."""
    monkeypatch.setattr(sources, "_CORPORA", dict(sources._CORPORA))
    calls = []

    def write(into, languages, downloads):
        calls.append((languages, downloads))
        write_pairs(into, "train", toy_pairs(5), languages)

    register(("de", "en", "fr"), write)
    return calls


def test_registered_names():
    names = ["bible-de-en", "iwslt16", "iwslt17"]
    names += ["multi30k", "tatoeba", "wmt14", "wmt16"]
    assert corpus_names() == names


def test_every_entry_is_complete():
    for name in corpus_names():
        corpus = sources.get(name)
        assert corpus.name == name
        assert len(corpus.languages) >= 2
        assert list(corpus.languages) == sorted(corpus.languages)
        assert corpus.origin.startswith(("https://", "the Python package "))
        assert corpus.megabytes > 0
        assert corpus.licence
        assert corpus.digests
        assert set(corpus.digests) <= {"sha256", "md5", "git", "first use"}


def test_the_page_on_security_says_how_each_corpus_is_checked():
    page = Path(__file__).parents[3] / "SECURITY.md"
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \|", page.read_text("utf-8"), re.M)
    registered = {name: ", ".join(sources.get(name).digests) for name in corpus_names()}
    assert dict(rows) == registered


def test_fetched_once_for_both_directions(calls, cache, capsys):
    forward = load_corpus("made-up", "fr", "de", cache_dir=cache)
    backward = load_corpus("made-up", "de", "fr", cache_dir=cache)
    assert forward.name == "made-up"
    assert forward.read_lines("train") == backward.read_lines("train")[::-1]
    assert calls == [(("de", "fr"), cache / "downloads" / "made-up")]
    assert capsys.readouterr().err.splitlines() == [
        "Fetching made-up (about 7 MB) from https://example.org/made-up"
    ]


def test_a_folder_of_that_name_comes_first(calls, cache, tmp_path, monkeypatch):
    write_pairs(tmp_path / "made-up", "train", toy_pairs(3))
    monkeypatch.chdir(tmp_path)
    assert load_corpus("made-up", "en", "de", cache_dir=cache).name == "made-up"
    assert not calls


def test_a_language_it_does_not_have(calls, cache):
    with pytest.raises(
        ValueError, match="languages de, en, fr. Received: 'en' to 'ja'"
    ):
        load_corpus("made-up", "en", "ja", cache_dir=cache)
    assert not calls


def test_failures_say_what_to_do_and_leave_nothing(calls, cache):
    def write(into, languages, downloads):
        (into / "train.de").write_text("half")
        raise FetchError("https://example.org/made-up.zip does not answer.")

    register(("de", "en"), write)

    with pytest.raises(
        FetchError,
        match=r"'made-up': https://example\.org/made-up\.zip does not answer\. .*"
        r"put it into .*made-up, or .*folder with train\.de, train\.en.*Received: ",
    ):
        load_corpus("made-up", "de", "en", cache_dir=cache)
    assert not list((cache / "sources").iterdir())


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
