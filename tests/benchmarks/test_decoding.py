"""The benchmark of beam search: its arithmetic, tiny runs, and failures."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

SIZES = {
    "vocabulary_size": 200,
    "num_layers": 2,
    "hidden_dim": 32,
    "intermediate_dim": 64,
    "num_heads": 4,
}
NAMES = ("vocabulary", "layers", "width", "feed-forward", "heads")
TINY = [f"--{name}={size}" for name, size in zip(NAMES, SIZES.values(), strict=True)]
TINY += ["--length=7", "--steps=6", "--beams=3", "--runs=1"]

ENVIRONMENTS = Path(__file__).resolve().parents[2] / "benchmarks" / "environments"


@pytest.fixture
def tables(benchmark):
    return benchmark("decoding_tables")


@pytest.fixture
def options(benchmark, tmp_path):
    """The options of every program, with weights."""
    weights = tmp_path / "weights.npz"
    benchmark("peers.model").write(weights, SIZES)
    cores = sorted(os.sched_getaffinity(0))[:1]
    common = {"weights": str(weights), "sizes": SIZES, "beams": 3}
    return {**common, "threads": 1, "cores": cores, "precision": "float32"}


@pytest.fixture
def sources():
    return np.random.default_rng(2).integers(4, 200, (6, 7)).tolist()


def test_hypotheses_are_compared_as_sets_without_the_last_token(tables):
    ours = [[[5, 6, 3], [5, 7, 3]], [[8, 8, 3], [9, 9, 3]]]
    assert tables.same_outputs(ours, [[[5, 7], [5, 6]], [[8, 8], [9, 9]]], 2) == 2
    assert tables.same_outputs(ours, [[[5, 7], [5, 6]], [[8, 8], [9, 8]]], 2) == 1
    assert tables.same_outputs(ours, [[[5, 7], [5, 5]], [[8, 8], [8, 8]]], 2) == 0


def test_rows_have_ratios_of_rounds_and_bars(tables):
    def measured(*seconds, ids=((5, 6),)):
        return tables.Measured(0.5, 9.0, [list(map(list, ids))] * 64, list(seconds))

    outcomes = {
        ("ours", "float32"): measured(2.0, 2.0, 4.0, ids=((5, 3),)),
        ("ours", "bfloat16"): measured(1.0, 1.0, 1.0, ids=((6, 3),)),
        ("CTranslate2", "float32"): measured(4.0, 6.0, 4.0),
        ("CTranslate2", "int8"): measured(1.0, 1.0, 1.0),
        ("Hugging Face", "float32"): measured(8.0, 8.0, 8.0),
        ("Hugging Face", "bfloat16"): measured(6.0, 6.0, 6.0),
    }
    rows = tables.peer_rows(outcomes, 64, 2)
    assert [row["bar"] for row in rows] == [None, None, 1.2, 0.9, None, 1.6]
    assert [row["same outputs"][:2] for row in rows] == ["64", "0 ", *4 * ["64"]]
    assert rows[2] == {
        "batch": 64,
        "program": "CTranslate2",
        "precision": "float32",
        "tokens per second": 32.0,
        "ours in float32 / it": 2.0,
        "ours in bfloat16 / it": 4.0,
        "bar": 1.2,
        "same outputs": "64 of 64",
        "seconds to load": 0.5,
        "of the first run": 9.0,
    }
    assert tables.bar(("CTranslate2", "float32"), 16, outcomes) is None


def test_variants_are_compared_to_the_first(tables, benchmark):
    adds = benchmark("arithmetic").MultiplyAdds
    base = tables.VariantTimes([2.0, 4.0], [0.5, 1.0], adds(1e6, 1e6, 0, 1e6), 10.0)
    other = tables.VariantTimes([1.0, 4.0], [0.5, 2.0], adds(0.5e6, 0, 0, 1e6), None)
    first, second = tables.variant_rows({"base": base, "sh-x": other}, tokens=30)
    assert first["ratio"] == first["ceiling"] == first["the paper's"] == 1
    assert first["tokens per second"] == 10 and first["encoder's share"] == 0.25
    assert second["ratio"] == 1.5 and second["ceiling"] == 2
    assert (second["bar"], second["the paper's"]) == (1.35, None)


def test_random_weights_translate_sentences_differently(benchmark, tmp_path, sources):
    import keras_attnvariants as kav

    sizes = SIZES | {"num_layers": 6}
    models = benchmark("peers.model")
    models.write(tmp_path / "weights.npz", sizes)
    model = models.read(tmp_path / "weights.npz", sizes)
    ids = np.array(sources, "int32")
    search = kav.backend.jit(
        lambda ids: kav.beam_search(model, ids, min_length=9, max_length=10).ids,
        xla=False,
    )
    found = np.asarray(search(ids))
    best = found[:, 0, :9]
    assert len({tuple(row) for row in best}) == len(ids)
    assert np.mean([len(set(row)) for row in best]) > 4.5
    assert not np.isin(best, [0, 1, 2, 3]).any()


def test_a_program_that_fails_says_why(benchmark, options):
    process = benchmark("peers.process")
    with pytest.raises(RuntimeError, match="no_such_program"):
        process.Program(sys.executable, "no_such_program", options)


@pytest.mark.slow
def test_ours_decodes_in_its_process_as_here(benchmark, options, sources):
    import keras_attnvariants as kav

    process = benchmark("peers.process")
    with process.Program(sys.executable, "ours", options) as program:
        ids = program.decode(sources, 6)
        assert program.decode(sources, 0) == []
        with pytest.raises(RuntimeError, match="ValueError"):
            program.decode(sources, 10_000)
    model = benchmark("peers.model").read(options["weights"], SIZES)
    sources = np.array(sources, "int32")
    search = {"beam_size": 3, "n_best": 3, "min_length": 5, "max_length": 6}
    assert ids == np.asarray(kav.beam_search(model, sources, **search).ids).tolist()
    assert {hypothesis.index(3) for row in ids for hypothesis in row} == {5}


@pytest.mark.slow
def test_ours_alone(benchmark, monkeypatch, tmp_path):
    decoding = benchmark("decoding")
    monkeypatch.setattr(decoding, "PEERS", {})
    file = tmp_path / "numbers.json"
    arguments = ["--precision=float32", "--batch=1", "--batch=2", f"--output={file}"]
    result = CliRunner().invoke(decoding.app, ["peers", *TINY, *arguments])
    assert result.exit_code == 0, result.output
    record = json.loads(file.read_text())
    assert [row["batch"] for row in record["rows"]] == [1, 2]
    assert all(row["ours in float32 / it"] == 1 for row in record["rows"])
    assert "threads: 1" in record["setting"]


@pytest.mark.slow
def test_variants_run_beside_the_baseline(benchmark, tmp_path):
    decoding = benchmark("decoding")
    file = tmp_path / "numbers.json"
    arguments = ["--batch=2", "--precision=float32", f"--output={file}"]
    result = CliRunner().invoke(decoding.app, ["variants", *TINY, *arguments])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [row["variant"] for row in rows] == ["base", "hc-sa", "sh-x"]
    ceilings = [row["ceiling"] for row in rows]
    assert ceilings[0] == 1 and ceilings == sorted(ceilings)
    assert [round(row["the paper's"], 2) for row in rows] == [1, 1.06, 1.3]
    # In runs this short, the encoder may by chance take longer than the whole.
    assert all(row["encoder's share"] > 0 for row in rows)


def peer(environment: str) -> str:
    """The interpreter of another program, or none: then the test cannot run."""
    given = os.environ.get("PEER_PYTHON")
    made = ENVIRONMENTS / environment / "requirements.txt"
    if given is None and not made.exists():
        pytest.skip(
            f"No environment with {environment}: benchmarks/decoding.py makes it"
        )
    return given or str(made.parent / "bin" / "python")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "environment"), [("ct2", "ctranslate2"), ("marian", "torch")]
)
def test_outputs_of_others_are_ours(
    benchmark, tables, options, sources, module, environment
):
    python = peer(environment)
    process = benchmark("peers.process")
    with process.Program(sys.executable, "ours", options) as ours:
        with process.Program(python, module, options) as theirs:
            expected, found = ours.decode(sources, 8), theirs.decode(sources, 7)
            assert len(theirs.decode(sources, 8)[0][0]) == 8
    assert tables.same_outputs(expected, found, 7) == len(sources)


@pytest.fixture
def environments(benchmark, monkeypatch, tmp_path):
    environments = benchmark("peers.environments")
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    return environments


def test_environments_are_made_once(environments, monkeypatch):
    commands = []

    def remember(*command):
        commands.append(command)
        if "venv" in command:
            command[-1].mkdir()

    monkeypatch.setattr(environments, "run", remember)
    python = environments.interpreter("torch")
    assert python.parts[-3] == "torch"
    assert commands[0][1:3] == ("-m", "venv")
    assert commands[1][0] == python and "torch==2.13.0" in commands[1]
    assert environments.interpreter("torch") == python
    assert len(commands) == 2
    monkeypatch.setitem(environments.REQUIREMENTS, "torch", ("torch==9",))
    environments.interpreter("torch")
    assert len(commands) == 4


def test_a_failed_installation_is_tried_again(environments, monkeypatch):
    folders = []

    def fail(*command):
        if "venv" not in command:
            raise RuntimeError("no connection")
        folders.append(command[-1])
        command[-1].mkdir()

    monkeypatch.setattr(environments, "run", fail)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no connection"):
            environments.interpreter("ctranslate2")
    assert len(folders) == 2
