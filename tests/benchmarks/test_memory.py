"""The benchmarks of memory: their arithmetic, and processes that are measured."""

import json

import pytest
from typer.testing import CliRunner

TINY = {
    "num_layers": 1,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "vocabulary_size": 5_000,
}


@pytest.fixture
def memory(benchmark):
    return benchmark("memory")


@pytest.fixture
def peak(benchmark):
    return benchmark("peak")


def test_a_line_through_medians(memory):
    mib = 2**20
    points = {tokens: [tokens * 100 + mib] for tokens in (10, 20, 30)}
    slope, intercept, distance = memory.line(points)
    assert slope == pytest.approx(100) and intercept == pytest.approx(mib)
    assert distance == pytest.approx(0, abs=1e-9)
    points[10] = [mib, 1000 + mib, 10 * mib]
    assert memory.line(points)[:2] == pytest.approx((100, mib))
    assert memory.line(points)[2] > 5


def test_rows_compare_what_fits_with_base_and_the_paper(memory):
    kib = 1024
    base = {tokens: [200 * kib * tokens + 100 * kib] for tokens in (1, 2)}
    other = {tokens: [100 * kib * tokens] for tokens in (1, 2)}
    first, second = memory.report_rows({"base": base, "hc-sa": other}, 1000 * kib)
    assert first["KiB per token"] == pytest.approx(200)
    assert first["tokens"] == pytest.approx(4.5)
    assert (first["ratio"], first["bar"], first["ratio, paper"]) == (1, None, 1)
    assert second["ratio"] == pytest.approx(10 / 4.5)
    assert second["bar"] == 1.17
    assert second["ratio, paper"] == pytest.approx(10.8 / 9.2)


def test_a_peak_is_what_a_run_holds_at_once(peak):
    megabytes = peak.in_own_process(peak_of_blocks) / 10**6
    # Two of the three blocks are held at a time.
    assert megabytes == pytest.approx(200, abs=5)


def peak_of_blocks():
    import numpy as np
    from peak import peak

    def run():
        block = np.ones(100_000_000, "uint8")
        for _ in range(2):
            block = np.ones(100_000_000, "uint8")
        return block.sum()

    return peak(run)


def test_more_tokens_take_more_memory(memory, peak):
    """One process for all four: it takes seconds to start."""
    steps = [
        memory.Step("hc-sa", sentences, 8, "float32", jit, TINY)
        for jit in (False, True)
        for sentences in (16, 256)
    ]
    found = peak.in_own_process(all_resident, [tuple(step) for step in steps])
    logits = 240 * 8 * TINY["vocabulary_size"] * 4
    for few, many in (found[:2], found[2:]):
        assert few > 0 and many - few > 0.9 * logits


def all_resident(steps):
    from memory import Step
    from memory import resident

    return [resident(Step(*step)) for step in steps]


def test_an_error_of_the_process_is_raised_here(memory, peak):
    with pytest.raises(ValueError, match="no-such-model"):
        peak.in_own_process(fail)


def fail():
    raise ValueError("no-such-model")


def test_every_model_is_measured_at_every_size(memory, tmp_path, monkeypatch):
    steps = []

    def measure(function, step):
        steps.append((step.model, step.sentences))
        return (len(step.model) + step.tokens) * 2**20

    monkeypatch.setattr(memory, "in_own_process", measure)
    file = tmp_path / "numbers.json"
    options = ["--batches=1", "--batches=2", f"--output={file}"]
    result = CliRunner().invoke(memory.app, options)
    assert result.exit_code == 0, result.output
    assert steps == [(name, size) for size in (1, 2) for name in memory.MODELS]
    rows = json.loads(file.read_text())["rows"]
    assert [row["model"] for row in rows] == list(memory.MODELS)


def test_one_size_is_refused(memory):
    result = CliRunner().invoke(memory.app, ["--batches=1", "--batches=1"])
    assert result.exit_code == 2
    assert "different sizes" in result.output
