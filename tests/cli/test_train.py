"""`kav train`: from files to a run; what a newcomer gets wrong is one clear line."""

import shutil

import pytest

from keras_attnvariants.cli.train import given
from tests.cli.conftest import check_error


@pytest.fixture
def folder(corpus_folder, tmp_path):
    """A copy of the corpus to spoil."""
    return shutil.copytree(corpus_folder, tmp_path / "corpus")


def train(kav, tmp_path, data, *options, source="xx", target="yy"):
    languages = ("--source", source, "--target", target)
    where = ("--data", data, "--run", tmp_path / "run")
    result = kav("train", *where, *languages, *options)
    assert not (tmp_path / "run").exists()
    return result


def test_a_missing_folder(kav, tmp_path):
    result = train(kav, tmp_path, tmp_path / "nowhere")
    check_error(result, "no such folder", str(tmp_path / "nowhere"))


def test_an_unknown_corpus_name_gets_the_nearest(kav, tmp_path):
    check_error(train(kav, tmp_path, "bible-en-de"), "bible-de-en")


def test_unequal_line_counts(kav, tmp_path, folder):
    with open(folder / "train.xx", "a") as file:
        file.write("one more\n")
    result = train(kav, tmp_path, folder)
    check_error(result, "equally many lines", "601", "600", "train.xx", "train.yy")


def test_a_binary_file(kav, tmp_path, folder):
    (folder / "train.yy").write_bytes(bytes(range(256)) * 100)
    check_error(train(kav, tmp_path, folder), "binary", "train.yy")


def test_an_empty_corpus(kav, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").write_bytes(b"")
    check_error(train(kav, tmp_path, folder), "'train' holds no usable pair")


def test_an_absent_language(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, target="fr")
    check_error(result, "'fr'", "languages there: xx, yy")


def test_no_training_split(kav, tmp_path, folder):
    for language in ("xx", "yy"):
        (folder / f"train.{language}").unlink()
    check_error(train(kav, tmp_path, folder), "'train'", "'validation', 'test'")


def test_an_unknown_preset_gets_the_nearest(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--preset", "kav/hc-sb/bible")
    check_error(result, "kav/hc-sa/bible")


def test_a_vocabulary_too_large_for_the_corpus(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--vocabulary-size", 7000)
    check_error(result, "vocabulary_size=7000", "<=")


@pytest.mark.parametrize(
    ("option", "value", "phrase"),
    [
        ("--minutes", "0", "`minutes` must be a positive number"),
        ("--steps", "-3", "'--steps'"),
        ("--warmup-steps", "0", "'--warmup-steps'"),
        ("--batch-tokens", "0", "'--batch-tokens'"),
        ("--precision", "float3", "float3"),
        ("--label-smoothing", "2", "`label_smoothing` must be"),
    ],
)
def test_numbers_out_of_range(option, value, phrase, kav, tmp_path, folder):
    sizes = ("--vocabulary-size", 50, "--width", 16, "--layers", 1, "--heads", 2)
    result = train(kav, tmp_path, folder, *sizes, option, value)
    check_error(result, phrase)


def test_a_number_that_is_none(kav, tmp_path, folder):
    result = train(kav, tmp_path, folder, "--steps", "many")
    check_error(result, "'--steps'", "valid integer")


def test_options_that_were_not_given_leave_the_presets_values():
    assert given(a=None, b=0, c=2.5) == {"b": 0, "c": 2.5}
