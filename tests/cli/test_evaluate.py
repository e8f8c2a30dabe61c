"""`kav evaluate`: scores with their signatures."""

import shutil

import pytest

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout


@pytest.fixture
def corpus(corpus_folder):
    return ("--data", corpus_folder, "--source", "xx", "--target", "yy")


def test_scores_translations_and_speed(kav, corpus, run_folder, tmp_path):
    options = ("--model", run_folder, "--beam-size", 1, "--sentences", 5)
    more = ("--speed-runs", 1, "--output", tmp_path / "lines")
    output = stdout(kav("evaluate", *corpus, *options, *more))
    assert f"{run_folder} on 5 sentences of test:" in output
    for name in ("BLEU", "chrF2", "TER"):
        [row] = [row for row in output.splitlines() if row.split()[:1] == [name]]
        assert "version:" in row
    assert "sentences/s" in output
    assert (tmp_path / "lines").read_text().count("\n") == 5
    assert "sentences/s" not in stdout(kav("evaluate", *corpus, *options))


def test_a_file_in_another_encoding(kav, corpus_folder, run_folder, tmp_path):
    folder = shutil.copytree(corpus_folder, tmp_path / "corpus")
    with (folder / "test.yy").open("r+b") as file:
        file.write(b"\xfc")
    corpus = ("--data", folder, "--source", "xx", "--target", "yy")
    options = ("--model", run_folder, "--beam-size", 1, "--sentences", 1)
    check_error(kav("evaluate", *corpus, *options), "5.0% of the lines", "test.yy")
    stdout(kav("evaluate", *corpus, *options, "--max-invalid", 0.05))


def test_nothing_to_evaluate(kav, corpus):
    check_error(kav("evaluate", *corpus), "--model", "--saved-model")


def test_a_split_that_is_not_there(kav, corpus, run_folder):
    options = ("--split", "test2016", "--model", run_folder)
    result = kav("evaluate", *corpus, *options)
    check_error(result, "'test2016'", "'train', 'validation', 'test'")


def test_one_file_for_the_translations_of_two_systems(
    kav, corpus, run_folder, tmp_path
):
    (tmp_path / "saved_model.pb").touch()
    systems = ("--model", run_folder, "--saved-model", tmp_path)
    result = kav("evaluate", *corpus, *systems, "--output", tmp_path / "lines")
    check_error(result, "--output", "one system")


def test_a_folder_for_the_translations_that_is_missing(
    kav, corpus, run_folder, tmp_path
):
    options = ("--model", run_folder, "--output", tmp_path / "no" / "lines")
    check_error(kav("evaluate", *corpus, *options), "No such folder")


def test_no_sentences(kav, corpus, run_folder):
    result = kav("evaluate", *corpus, "--model", run_folder, "--sentences", 0)
    check_error(result, "'--sentences'")
