"""Paired bootstrap against the command line, its seed, and bad input."""

import os
from io import StringIO

import pytest
from rich.console import Console
from sacrebleu.metrics import BLEU

from keras_attnvariants.evaluation import corpus_bleu
from keras_attnvariants.evaluation import paired_bootstrap
from keras_attnvariants.evaluation.significance import comparison_table
from keras_attnvariants.evaluation.significance import mean_interval

REFERENCES = [
    "The cat was sitting on the mat and purred.",
    "Two dogs run through the high grass.",
    "There is no street left in the old town.",
    '"I will come at noon tomorrow", he said.',
]
SYSTEMS = {
    "baseline": [
        "Cat on mat purr.",
        "Two dogs running through a field",
        "There is no street in old town.",
        "He said he come noon.",
    ],
    "ours": [
        "The cat sat on the mat, and purred.",
        "Two dogs are running through high grass",
        "There is no street left in the old town.",
        'He said: "I shall come tomorrow at noon"!',
    ],
}

# sacrebleu references.txt -i baseline.txt ours.txt -m bleu chrf ter -w 6
#   --paired-bs --paired-bs-n 200
COMMAND_LINE = {
    ("baseline", "BLEU"): (12.787685, 12.807556, 13.982772, None),
    ("ours", "BLEU"): (41.911459, 39.352518, 34.457949, 0.0050),
    ("baseline", "chrF2"): (37.153893, 37.344677, 19.441893, None),
    ("ours", "chrF2"): (65.765224, 65.701508, 17.840527, 0.0050),
    ("baseline", "TER"): (57.575758, 57.414658, 22.337664, None),
    ("ours", "TER"): (42.424242, 42.569969, 28.030302, 0.0249),
}


def test_figures_of_the_command_line():
    rows = paired_bootstrap(SYSTEMS, REFERENCES, ("bleu", "chrf", "ter"), samples=200)
    figures = {
        (row.system, row.metric): (row.value, row.mean, row.interval, row.p_value)
        for row in rows
    }
    assert list(figures) == list(COMMAND_LINE)
    for key, values in COMMAND_LINE.items():
        assert figures[key] == pytest.approx(values, abs=6e-5), key


def test_values_are_those_of_the_whole_test_set():
    rows = paired_bootstrap(SYSTEMS, REFERENCES, ["bleu"], samples=10)
    for row in rows:
        whole = corpus_bleu(SYSTEMS[row.system], REFERENCES)
        assert row.value == pytest.approx(whole.value)
        assert "bs:10|seed:12345" in row.signature


def test_seed_decides_the_figures():
    first = paired_bootstrap(SYSTEMS, REFERENCES, ["chrf"], samples=50, seed=7)
    again = paired_bootstrap(SYSTEMS, REFERENCES, ["chrf"], samples=50, seed=7)
    other = paired_bootstrap(SYSTEMS, REFERENCES, ["chrf"], samples=50, seed=8)
    assert first == again
    assert [row.mean for row in first] != [row.mean for row in other]


@pytest.mark.parametrize("before", [None, "99"])
def test_environment_is_left_as_it_was(monkeypatch, before):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if before is not None:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    rows = paired_bootstrap(SYSTEMS, REFERENCES, ["bleu"], samples=10, seed=7)
    assert "seed:7" in rows[0].signature
    assert os.environ.get("SACREBLEU_SEED") == before


def test_equal_systems_do_not_differ():
    systems = {"a": SYSTEMS["ours"], "b": SYSTEMS["ours"], "c": SYSTEMS["baseline"]}
    rows = paired_bootstrap(systems, REFERENCES, ["bleu"], samples=100)
    assert rows[0].p_value is None
    assert rows[1].p_value == 1
    assert rows[2].p_value < 0.05


def test_metric_with_settings_of_its_own():
    rows = paired_bootstrap(SYSTEMS, REFERENCES, [BLEU(tokenize="char")], samples=10)
    assert "tok:char" in rows[0].signature


def test_table_shows_names_as_they_are():
    systems = {"[red]base": SYSTEMS["baseline"], "ours": SYSTEMS["ours"]}
    console = Console(width=120, record=True, file=StringIO())
    console.print(comparison_table(paired_bootstrap(systems, REFERENCES, samples=10)))
    text = console.export_text()
    assert "[red]base" in text
    assert "baseline" in text
    assert "chrF2|nrefs:1|bs:10|seed:12345" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"systems": {"ours": ["a"] * 4}}, "two or more .* with \\['ours'\\]"),
        ({"systems": [["a"], ["b"]]}, "two or more .* Received: list"),
        ({"systems": {"a": ["x"] * 4, "b": ["y"] * 3}}, "{'a': 4, 'b': 3}"),
        ({"systems": {"a": ["x"] * 4, "b": ["y", 1, "y", "y"]}}, r"systems\['b'\]"),
        ({"references": REFERENCES[:3]}, "3 references for 4 hypotheses"),
        ({"metrics": ["blue"]}, "'bleu', 'chrf', 'ter'.* Received: 'blue'"),
        ({"samples": 0}, "`samples` must be a positive integer. Received: 0"),
        ({"seed": 0}, "`seed` must be a positive integer. Received: 0"),
        ({"seed": 1.5}, "`seed` must be a positive integer. Received: 1.5"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"systems": SYSTEMS, "references": REFERENCES, **change}
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(**arguments)


def test_the_interval_of_a_mean_by_hand():
    # Student's t for 2 degrees of freedom at 97.5 % is 4.302653.
    found = mean_interval([30.0, 31.0, 32.0])
    assert found == pytest.approx((31.0, 1.0, 31 - 4.302653 / 3**0.5, 33.484138), 1e-6)
    assert mean_interval([30.0]) == (30.0, None, None, None)
