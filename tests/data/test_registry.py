import re
from pathlib import Path

import pytest

from keras_attnvariants.data import FetchError
from keras_attnvariants.data import corpus_names
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import register_corpus
from keras_attnvariants.data import registry
from tests.data.toy import toy_pairs
from tests.data.toy import write_pairs


@pytest.fixture
def calls(monkeypatch):
    """Registers the corpus "made-up" and collects the calls that fetch it."""
    monkeypatch.setattr(registry, "_CORPORA", dict(registry._CORPORA))
    calls = []

    @register_corpus(
        "made-up",
        languages=("de", "en", "fr"),
        origin="https://example.org/made-up",
        megabytes=7,
        licence="public domain",
    )
    def write(into, languages, downloads):
        calls.append((languages, downloads))
        write_pairs(into, "train", toy_pairs(5), languages)

    return calls


def test_registered_names():
    names = ["bible-de-en", "bible-en-ja", "iwslt16", "iwslt17"]
    names += ["multi30k", "tatoeba", "wmt14", "wmt16"]
    assert corpus_names() == names


def test_every_entry_is_complete():
    for name in corpus_names():
        corpus = registry.get(name)
        assert corpus.name == name
        assert len(corpus.languages) >= 2
        assert list(corpus.languages) == sorted(corpus.languages)
        assert corpus.origin.startswith(("https://", "the Python package "))
        assert corpus.megabytes > 0
        assert corpus.licence
        assert corpus.digests and set(corpus.digests) <= set(registry.DIGESTS)


def test_the_page_on_security_says_how_each_corpus_is_checked():
    page = Path(__file__).parents[2] / "SECURITY.md"
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \|", page.read_text("utf-8"), re.M)
    registered = {
        name: ", ".join(registry.get(name).digests) for name in corpus_names()
    }
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
    @register_corpus("made-up", ("de", "en"), "https://example.org", 7, "none")
    def write(into, languages, downloads):
        (into / "train.de").write_text("half")
        raise FetchError("https://example.org/made-up.zip does not answer.")

    with pytest.raises(
        FetchError,
        match=r"'made-up': https://example\.org/made-up\.zip does not answer\. .*"
        r"put it into .*made-up, or .*folder with train\.de, train\.en.*Received: ",
    ):
        load_corpus("made-up", "de", "en", cache_dir=cache)
    assert not list((cache / "sources").iterdir())
