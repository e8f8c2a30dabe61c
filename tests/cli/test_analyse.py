"""`kav analyse` and `kav attention`: tables and pictures."""

import csv
import shutil

import pytest
from PIL import Image

from keras_attnvariants.trained import names
from tests.cli.conftest import check_error
from tests.cli.conftest import stdout

CORPUS = ("--source", "xx", "--target", "yy")


@pytest.fixture
def analyse(kav, run_folder, tmp_path):
    """Runs an analysis; returns what it prints and the rows of its table."""

    def run(name, data, *options, runs=(run_folder,), file=None):
        folder = tmp_path / "new" / "out"
        options = ("--analysis", name, "--data", data, "--output", folder, *options)
        output = stdout(kav("analyse", *runs, *options))
        file = file or f"{run_folder.name}.{name}"
        assert output.splitlines()[-2:] == [
            str(folder / f"{file}{suffix}") for suffix in (".csv", ".png")
        ]
        assert (folder / f"{file}.png").read_bytes().startswith(b"\x89PNG")
        with open(folder / f"{file}.csv", newline="", encoding="utf-8") as rows:
            return output, list(csv.DictReader(rows))

    return run


def test_heads(analyse, corpus_folder):
    output, rows = analyse("locality", corpus_folder, *CORPUS, "--sentences", 7)
    assert "tokens (7 pairs)" in output
    assert [row["place"] for row in rows] == [
        place for place in ("encoder", "decoder", "cross") for _ in "12"
    ]
    _, rows = analyse("distance", corpus_folder, *CORPUS)
    assert len(rows) == 3 * 21


def test_pairs(analyse, tmp_path):
    for part, language, text in (
        ("src", "xx", "be la\nla\n"),
        ("correct", "yy", "la be\nbe\n"),
        ("incorrect", "yy", "la\nbe la\n"),
    ):
        (tmp_path / f"subj_verb_agreement.{part}.{language}").write_text(text)
    _, rows = analyse("contrastive", tmp_path)
    assert {(row["category"], row["pairs"]) for row in rows} == {
        ("subj_verb_agreement", "2")
    }
    assert [row["score"] for row in rows] == ["sum", "mean"]
    _, rows = analyse("agreement", tmp_path)
    assert {row["measure"] for row in rows} == {"position of the changed word"}


def test_alignments(analyse, tmp_path):
    for name, text in (("xx", "be la\n"), ("yy", "la be\n"), ("align", "0-1 1-0\n")):
        (tmp_path / f"test.{name}").write_text(text)
    _, rows = analyse("alignment-errors", tmp_path, *CORPUS)
    assert [row["head"] for row in rows] == ["", "1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bleu-by-length", "bleu-by-off-diagonality"])
def test_two_systems(name, analyse, corpus_folder, run_folder, tmp_path):
    other = shutil.copytree(run_folder / "best", tmp_path / "other")
    _, rows = analyse(
        name,
        corpus_folder,
        *CORPUS,
        "--sentences",
        10,
        runs=(run_folder, other),
        file=name,
    )
    assert {row["system"] for row in rows} == {run_folder.name, "other"}


def test_a_model_without_phrases(kav, run_folder, corpus_folder, tmp_path):
    options = ("--data", corpus_folder, *CORPUS, "--output", tmp_path)
    for name in ("activation-shares", "heat-maps"):
        result = kav("analyse", run_folder, "--analysis", name, *options)
        check_error(result, "attends to tokens and phrases")


def test_a_sentence_and_its_translation(kav, run_folder, tmp_path):
    picture = tmp_path / "weights.png"
    options = ("--model", run_folder, "--output", picture)
    output = stdout(kav("attention", "be la", *options, "--translation", "la be"))
    assert output == f"la be\n{picture}\n"
    with Image.open(picture) as image:
        small = image.size
    more = ("--translation", "la be " * 3)
    stdout(kav("attention", "be la", *options, *more))
    with Image.open(picture) as image:
        assert image.size[1] > small[1]


def test_a_sentence_is_read_by_a_model_of_the_package(
    kav, run_folder, tmp_path, monkeypatch
):
    shutil.copytree(run_folder / "best", tmp_path / names.DEFAULT_MODEL)
    monkeypatch.setattr(names, "MODELS", tmp_path)
    picture = tmp_path / "weights.png"
    more = ("--translation", "la be", "--output", picture)
    assert stdout(kav("attention", "be la", *more)) == f"la be\n{picture}\n"


def test_a_missing_layer(kav, run_folder, tmp_path):
    options = ("--model", run_folder, "--output", tmp_path / "weights.png")
    more = ("--translation", "la be", "--layer", 7)
    check_error(kav("attention", "be la", *options, *more), "No layer 7")
