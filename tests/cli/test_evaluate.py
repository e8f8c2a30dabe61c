"""`kav evaluate` and `kav compare`: scores, files and wrong input."""

import importlib.util
import shutil

import pytest

from tests.cli.conftest import check_error
from tests.cli.conftest import stdout
from tests.data import recordings
from tests.experiments.test_comparison import BARE
from tests.experiments.toy import SYSTEMS
from tests.experiments.toy import toy_file
from tests.serving.echo import echo_server


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


def test_a_model_on_a_server(kav, corpus):
    with echo_server() as address:
        place = ("--server", f"{address}/en-de", "--sentences", 5)
        output = stdout(kav("evaluate", *corpus, *place))
    assert f"{address}/en-de on 5 sentences of test:" in output and "BLEU" in output


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


def test_a_missing_split(kav, corpus, run_folder):
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


def test_a_file_to_begin_with(kav, tmp_path):
    path = tmp_path / "new.toml"
    assert f"kav compare {path} --folder" in stdout(kav("compare", "--init", path))
    text = path.read_text("utf-8")
    assert "[systems.base]" in text
    check_error(kav("compare", "--init", path), "new.toml")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    "old, new, phrases",
    [
        ("[training]", "[traning]", ["has no 'traning'. Did you mean 'training'"]),
        ('"base"', '"bass"', ["`baseline`", "Did you mean 'base'"]),
        ("[systems.hc]", '[systems."a/b"]', ["without slashes", "'a/b'"]),
        ("[systems.hc]", "[systems.Base]", ["'base' and 'Base'"]),
        ("num_heads = 2", "num_heads = 3", ["System 'base' does not build", "=3"]),
        ("kav/hc-sa/bible", "kav/hc-sb/bible", ["'hc' does not build", "kav/hc-sa"]),
        ('= "test"', '= "test2016"', ["Test set 'test'", "no such split"]),
        ('source = "xx"', 'source = "zz"', ["languages there: xx, yy"]),
    ],
)
def test_a_wrong_file_is_one_line(kav, tmp_path, corpus_folder, old, new, phrases):
    path = toy_file(tmp_path, corpus_folder, **{old: new})
    folder = tmp_path / "out"
    check_error(kav("compare", path, "--folder", folder), *phrases)
    assert not folder.exists()


def test_nothing_trained_yet(kav, tmp_path, corpus_folder):
    path = toy_file(tmp_path, corpus_folder, SYSTEMS, **BARE)
    folder = tmp_path / "out"
    text = stdout(kav("compare", path, "--folder", folder, "--score-only"))
    assert "Missing: base 1, base 2, hc 1, hc 2." in text
    assert (folder / "results.json").is_file()


def test_without_matplotlib(kav, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = kav("attention", "a", "--model", ".")
    check_error(result, "matplotlib, not installed here", "pip install")


def test_a_model_of_another_task(kav, tmp_path, run_folder):
    folder = recordings.corpus(tmp_path / "corpus")
    options = ("--data", folder, "--task", "speech", "--model", run_folder)
    result = kav("evaluate", *options)
    check_error(result, "reads texts, and the task 'speech' has recordings")


def test_summaries_beside_their_baselines(kav, corpus, run_folder, tmp_path):
    references, speakers = tmp_path / "references.json", tmp_path / "speakers"
    references.write_text('["v", "w x"]\n["v w"]\n["x"]\n')
    speakers.write_text("a\na\nb\n")
    options = ("--model", run_folder, "--sentences", 3, "--task", "summarisation")
    more = ("--references", references, "--groups", speakers, "--samples", 20)
    output = stdout(kav("evaluate", *corpus, *options, *more, "--beam-size", 1))
    heads = [line for line in output.splitlines() if not line.startswith(" ")]
    names = ["lead-1", "oracle", str(run_folder)]
    assert heads == [f"{name} on 3 documents of test:" for name in names]
    scores = [line.split() for line in output.splitlines() if line.startswith(" ")]
    assert [row[0] for row in scores] == 3 * ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert all(row[2][0] == "[" and "nrefs:var|" in row[-1] for row in scores)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ('["a"]\n', "1 lines for 2 sources"),
        ('["a"]\nnone\n', "Line 2 of --references"),
        ('["a"]\n[]\n', "Line 2 of --references"),
        ('[1]\n["a"]\n', "Line 1 of --references"),
    ],
)
def test_wrong_references(kav, corpus, run_folder, tmp_path, text, phrase):
    path = tmp_path / "references.json"
    path.write_text(text)
    options = ("--model", run_folder, "--sentences", 2, "--references", path)
    check_error(kav("evaluate", *corpus, *options), phrase)


def test_groups_of_other_sources_are_told_before_anything_is_translated(
    kav, corpus, run_folder, tmp_path
):
    (tmp_path / "speakers").write_text("a\n")
    options = ("--model", run_folder, "--sentences", 2)
    result = kav("evaluate", *corpus, *options, "--groups", tmp_path / "speakers")
    check_error(result, "--groups must have a line", "1 lines for 2 sources")
    assert not result.stdout
    # Without --sentences, the file must be of this test set.
    (tmp_path / "speakers").write_text("a\n" * 1000)
    options = ("--model", run_folder, "--groups", tmp_path / "speakers")
    check_error(kav("evaluate", *corpus, *options), "--groups must have a line")
