"""Data sets of the Hugging Face hub, asked for over HTTP on this machine."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from keras_attnvariants import presets
from keras_attnvariants.data import load_corpus
from keras_attnvariants.data import mix_corpora
from keras_attnvariants.data.sources import FetchError
from keras_attnvariants.data.sources import hugging_face
from keras_attnvariants.data.text_files import write_splits
from keras_attnvariants.training.run_settings import check_same_run
from keras_attnvariants.training.training_config import describe_data
from tests.trained.stand_ins import COMMIT
from tests.trained.stand_ins import Handler
from tests.trained.stand_ins import serving

# The library reads its settings when it is imported.
PROGRAM = """
import sys
from keras_attnvariants.data import load_corpus
for spec in sys.argv[1:]:
    try:
        corpus = load_corpus(spec, "en", "de")
        print([corpus.name, corpus.revision, sorted(corpus.splits),
               [corpus.read_lines(split) for split in sorted(corpus.splits)]])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="needs the extra `datasets`"
)


class DataSets(Handler):
    """The answers to readers of data sets, whose files are those of `hub.models`."""

    def respond(self, path: str, body: bytes) -> None:
        kind, *parts = path.strip("/").split("/")
        name, rest = "/".join(parts[kind == "api" :][:2]), parts[kind == "api" :][2:]
        files = self.hub.models.get(name)
        if parts == ["agent-harnesses"]:
            self.answer({})
        elif files is None:
            self.answer({"error": "none"}, 404, X_Error_Code="RepoNotFound")
        elif rest[:1] == ["tree"]:
            file = {"type": "file", "oid": "0"}
            sizes = [{"path": name, "size": len(files[name]), **file} for name in files]
            self.answer(sizes if len(rest) == 2 else [])
        elif rest[:1] == ["resolve"] and rest[-1] in files:
            self.answer(files[rest[-1]], ETag='"1"', X_Repo_Commit=COMMIT)
        elif rest[:1] == ["resolve"]:
            self.answer(b"", 404, X_Error_Code="EntryNotFound")
        elif rest in ([], ["revision", COMMIT], ["revision", "main"]):
            siblings = [{"rfilename": name} for name in files]
            self.answer({"id": name, "sha": COMMIT, "siblings": siblings})
        else:
            self.answer({"error": "none"}, 404, X_Error_Code="RevisionNotFound")


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def hub():
    pairs = [{"translation": {"en": "one\ntwo", "de": "eins zwei"}}]
    with serving(DataSets) as hub:
        hub.models = {
            "user/talks": {
                "train.jsonl": lines(*pairs * 2),
                "dev.jsonl": lines(*pairs),
            },
            "user/columns": {"train.csv": b"id,de,en\n1,eins,one\n"},
            "user/french": {"train.csv": b"en,fr\none,un\n"},
            "user/code": {"code.py": b"raise SystemExit"},
        }
        yield hub


def run(hub, cache, *specs):
    """Output of a program that loads corpora, a line each."""
    variables = {"HF_ENDPOINT": hub.url, "HF_HOME": str(cache), "KAV_CACHE": str(cache)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM, *specs],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_datasets
@pytest.mark.slow
def test_data_sets_are_streamed_into_the_cache(hub, tmp_path):
    pinned = f"hf:user/talks@{COMMIT}"
    talks, again, columns = run(
        hub, tmp_path, "hf:user/talks", pinned, "hf:user/columns"
    )
    assert f"'talks', 'user/talks@{COMMIT}', ['train', 'validation']" in talks
    assert "(['one two', 'one two'], ['eins zwei', 'eins zwei'])" in talks
    assert again == talks
    assert "(['one'], ['eins'])" in columns
    asked = [request for request in hub.asked if "talks" in request]
    # What has been fetched is not asked for any more.
    assert run(hub, tmp_path, pinned) == [talks]
    assert [request for request in hub.asked if "talks" in request] == asked


@needs_datasets
@pytest.mark.slow
def test_what_cannot_be_fetched_is_told_in_a_line(hub, tmp_path):
    names = ["hf:user/none", "hf:user/talks@none", "hf:user/talks:none"]
    found = run(hub, tmp_path, *names, "hf:user/french", "hf:user/code")
    assert len(found) == 5
    assert all(line.startswith("FetchError: hf:user/") for line in found)
    messages = ["not found", "not found", "'none' not found", "must have", "scripts"]
    for line, message in zip(found, messages, strict=True):
        assert message in line.lower()
    hub.url = "http://127.0.0.1:9"
    [line] = run(hub, tmp_path, "hf:user/talks")
    assert line.startswith("FetchError: hf:user/talks cannot be fetched: ")


@pytest.mark.parametrize("spec", ["hf:", "hf:a/b/c", "hf:../x", "hf:a@", "hf:a:b:c"])
def test_names_that_are_none(spec):
    with pytest.raises(ValueError, match="must be hf:NAME"):
        load_corpus(spec, "en", "de")


def test_the_library_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs datasets.*\[datasets\]"):
        load_corpus("hf:user/talks", "en", "de", cache_dir=tmp_path)


@pytest.mark.parametrize("row", [{"fr": "un"}, {"translation": {"fr": "un"}}])
def test_rows_without_a_language(row):
    with pytest.raises(FetchError, match="languages en and de.*Received: fr"):
        list(hugging_face.lines_of("x", "train", [row], ("en", "de")))


def test_rows_without_a_text_are_empty_lines(tmp_path):
    rows = [{"en": None, "de": "eins"}, {"en": "two\u2028three", "de": ""}]
    lines = hugging_face.lines_of("x", "test", rows, ("en", "de"))
    write_splits(tmp_path, lines)
    assert (tmp_path / "test.en").read_text("utf-8") == "\ntwo three\n"
    assert (tmp_path / "test.de").read_text("utf-8") == "eins\n\n"


def test_the_revision_is_in_the_settings_of_a_run(corpus_folder, corpus_cache):
    corpus = load_corpus(corpus_folder, "xx", "yy", cache_dir=corpus_cache)
    one, two = (dataclasses.replace(corpus, revision=name) for name in ("a@1", "b@2"))
    mixed = mix_corpora([one, two], cache_dir=corpus_cache)
    preset = presets.get("kav/base/bible")
    found = [describe_data(preset, each, {}) for each in (corpus, one, mixed)]
    assert [data.get("revision") for data in found] == [None, "a@1", "a@1 b@2"]


def test_a_run_goes_on_with_the_same_sentences_of_another_revision(tmp_path):
    saved, given = ({"training": {"data": {"revision": name}}} for name in "ab")
    check_same_run(tmp_path, saved, given)
