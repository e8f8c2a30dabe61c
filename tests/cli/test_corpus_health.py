"""Each kind of damage to a corpus is found."""

import shutil

import pytest

from keras_attnvariants.cli import corpus_health
from keras_attnvariants.cli.health import DAMAGED
from keras_attnvariants.cli.health import NOTE
from keras_attnvariants.utils.folders import new_folder


@pytest.fixture
def corpus(corpus_folder, tmp_path):
    """A copy to damage."""
    return shutil.copytree(corpus_folder, tmp_path / "corpus")


def damaged(found):
    return {f.name: f for f in found.findings if f.state == DAMAGED}


def test_a_healthy_corpus(corpus):
    (corpus / "README.md").write_text("About it.\n")
    found = corpus_health.examine_corpus(corpus)
    assert found.is_healthy
    assert "train.xx" in {finding.name for finding in found.findings}
    assert not any(finding.state == NOTE for finding in found.findings)
    assert found.usable == [f"--data {corpus} --source xx --target yy"]


def test_unequal_numbers_of_lines(corpus):
    with (corpus / "train.xx").open("a") as file:
        file.write("one more\n")
    found = corpus_health.examine_corpus(corpus)
    assert "601 in train.xx, 600 in train.yy" in damaged(found)["train"].text
    assert found.usable == []


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        (bytes(range(256)) * 100, "binary"),
        (b"", "empty"),
        ("für und wider\n".encode("latin-1") * 600, "UTF-8"),
        ("für und wider\n".encode("utf-16") * 600, "UTF-16"),
        (b"\x1f\x8b broken", "Broken gzip"),
    ],
)
def test_damaged_files(corpus, data, phrase):
    (corpus / "train.yy").write_bytes(data)
    finding = damaged(corpus_health.examine_corpus(corpus))["train.yy"]
    assert phrase in finding.text and finding.advice


def test_splits_that_are_incomplete(corpus):
    (corpus / "test.yy").unlink()
    for language in ("xx", "yy"):
        (corpus / f"train.{language}").unlink()
    found = corpus_health.examine_corpus(corpus)
    notes = {f.name: f.text for f in found.findings if f.state == NOTE}
    assert found.is_healthy
    assert notes["test"] == "left out: only xx" and "scoring" in notes["train"]


def test_tables(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("a\tb\n" * 9 + "c\n")
    found = corpus_health.examine_table(table)
    assert found.is_healthy and "1 of 10 lines" in found.findings[0].text
    table.write_text("a\tb\n" + "c\n" * 9)
    found = corpus_health.examine_table(table)
    assert "9 of 10 lines" in damaged(found)["pairs.tsv"].text


def test_what_the_cache_has(tmp_path, monkeypatch):
    monkeypatch.setenv("KAV_CACHE", str(tmp_path))
    found = corpus_health.examine_cached("bible-de-en")
    assert found.is_healthy and "not fetched" in found.findings[0].text
    folder = tmp_path / "sources" / "bible-de-en-de-en"
    with new_folder(folder) as writer:
        writer.write_bytes("train.de", b"Haus\n")
    found = corpus_health.examine_cached("bible-de-en")
    assert [f.text for f in found.findings] == ["as written"]
    (folder / "train.de").write_bytes(b"Maus\n")
    finding = damaged(corpus_health.examine_cached("bible-de-en"))[folder.name]
    assert "train.de" in finding.text and "anew" in finding.advice
