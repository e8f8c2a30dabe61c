"""The benchmark of analyses, with a small model."""

import json
from itertools import count
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner


@pytest.fixture
def analyses(benchmark):
    return benchmark("analyses")


def test_data_are_repeated_as_often_as_needed(analyses):
    assert list(analyses.first(5, lambda: iter("ab"))) == list("ababa")


def test_only_what_is_needed_is_read(analyses):
    assert list(analyses.first(2, count)) == [0, 1]


def test_growth_is_that_of_time_over_that_of_sentences(analyses):
    costs = {2000: analyses.Cost(6.0, 3 * 10**6), 1000: analyses.Cost(4.0, 10**6)}
    rows = analyses.rows_of("locality", costs)
    assert [(row["sentences"], row["growth"], row["bar"]) for row in rows] == [
        (1000, 1.0, None),
        (2000, 0.75, 1.0),
    ]
    assert [row["memory, MB"] for row in rows] == [1.0, 3.0]


def test_a_table_of_an_analysis(analyses, run_folder, corpus_folder, tmp_path):
    file = tmp_path / "numbers.json"
    options = {
        "data": corpus_folder,
        "source": "xx",
        "target": "yy",
        "analysis": "locality",
        "output": file,
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    sizes = ["--sentences=10", "--sentences=30"]
    result = CliRunner().invoke(analyses.app, [str(run_folder), *arguments, *sizes])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [(row["analysis"], row["sentences"]) for row in rows] == [
        ("locality", 10),
        ("locality", 30),
    ]
    assert all(row["CPU, s"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("contrastive", "needs --contrastive"),
        ("alignment-errors", "needs --alignments"),
        ("heat-maps", "is of one sentence"),
    ],
)
def test_an_analysis_without_its_data_is_refused(analyses, run_folder, name, reason):
    arguments = [str(run_folder), "--data=x", "--source=xx", "--target=yy"]
    names = ["--analysis=locality", f"--analysis={name}"]
    result = CliRunner().invoke(analyses.app, [*arguments, *names])
    assert result.exit_code == 2
    assert reason in result.output


def test_data_without_sentences_are_refused(analyses):
    with pytest.raises(ValueError, match="no sentences"):
        analyses.first(5, lambda: iter([]))


def test_agreement_is_of_subjects_and_verbs(analyses):
    pairs = [SimpleNamespace(category=name) for name in ("kein", "subj_verb_agreement")]
    agreement = "agreement"
    assert list(analyses.needed(agreement, lambda: iter(pairs))()) == pairs[1:]
    contrastive = "contrastive"
    assert list(analyses.needed(contrastive, lambda: iter(pairs))()) == pairs
