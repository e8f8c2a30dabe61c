"""The benchmark for accelerators, on a processor and in tiny sizes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SIZES = "--width 8 --layers 1 --heads 2 --vocabulary 40 --rows 2 --length 4"
RUN = f"{SIZES} --updates 2 --runs 1 --product-size 32"


@pytest.fixture
def environment(tmp_path):
    """An environment where packages that a GPU machine may lack cannot be imported."""
    for name in ("tensorflow", "tensorflow_text", "sentencepiece", "sacrebleu"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name}')\n")
    path = os.pathsep.join((str(tmp_path), str(REPOSITORY)))
    return os.environ | {"PYTHONPATH": path, "KERAS_BACKEND": "jax"}


def test_families_are_measured_without_tensorflow(environment, tmp_path):
    families = ["context", "hc-sa", "no-such-family"]
    options = [word for family in families for word in ("--family", family)]
    output = tmp_path / "gpu.json"
    command = [sys.executable, "gpu.py", *RUN.split(), *options, "--output", output]
    subprocess.run(
        command, cwd=REPOSITORY / "benchmarks", env=environment, check=True, timeout=300
    )
    report = json.loads(output.read_text())
    rows = {(row["program"], row["precision"]): row for row in report["rows"]}
    assert set(rows) == {
        (program, dtype)
        for program in ("base", "context", "hc-sa")
        for dtype in ("float32", "bfloat16")
    }
    for row in rows.values():
        assert row["tokens per second"] > 0 and row["share of product"] > 0
        assert row["share of peak"] is None  # for a processor, no peak is stated
    assert rows["base", "float32"]["time / base"] == 1.0
    assert rows["context", "float32"]["the paper's"] == 5.6
    for left_out in ("no-such-family, float32", "PyTorch, compiled, bfloat16"):
        assert left_out in report["text"]


def test_programs_without_time_are_named(environment, tmp_path):
    output = tmp_path / "gpu.json"
    command = [sys.executable, "gpu.py", *RUN.split(), "--minutes", "0"]
    done = subprocess.run(
        [*command, "--output", output],
        cwd=REPOSITORY / "benchmarks",
        env=environment,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "No time" in done.stderr


def test_a_device_without_a_kernel_is_reported(environment):
    done = subprocess.run(
        [sys.executable, "fused_attention.py", "--length", "32", "--runs", "1"],
        cwd=REPOSITORY / "benchmarks",
        env=environment,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "There is no kernel for length 32" in done.stderr
