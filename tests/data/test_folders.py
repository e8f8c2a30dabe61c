"""Splits and languages of folders."""

import pytest

from keras_attnvariants.data.folders import ParallelFiles
from keras_attnvariants.data.folders import find_splits


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    return make


def test_splits_have_their_usual_order(folder):
    path = folder(*(f"{s}.{la}" for s in ("b", "test", "dev", "train") for la in "xy"))
    splits, notes = find_splits(path, ("y", "x"))
    assert list(splits) == ["train", "validation", "test", "b"]
    assert splits["b"] == ParallelFiles(path / "b.y", path / "b.x")
    assert notes == ()


def test_names_may_have_dots_and_gz(folder):
    path = folder("news.2017.en.gz", "news.2017.de", "notes.txt", "README")
    splits, _ = find_splits(path, ("en", "de"))
    assert splits == {
        "news.2017": ParallelFiles(path / "news.2017.en.gz", path / "news.2017.de")
    }


def test_splits_in_one_language_are_noted(folder):
    path = folder("train.en", "train.de", "test.en", "test.fr")
    splits, notes = find_splits(path, ("en", "de"))
    assert list(splits) == ["train"]
    assert notes == ("test: left out, because there is only 'en'",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("train.en", "train.fr"), "language 'de' .*languages there: en, fr"),
        (("train.en", "train.fr", "test.de", "test.fr"), "No split .* both languages"),
        (("dev.en", "val.en", "dev.de"), "Two files for split 'validation'"),
        ((), "languages there: none"),
    ],
)
def test_what_cannot_be_used_is_refused(folder, names, message):
    with pytest.raises(ValueError, match=f"{message}.*Received: "):
        find_splits(folder(*names), ("en", "de"))
