"""The benchmark of training: its arithmetic, and both programs at tiny size."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

SIZES = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "num_heads": 2,
}
TASK = {"sizes": SIZES, "smoothing": 0.0, "learning_rate": 0.01}


@pytest.fixture
def training(benchmark):
    return benchmark("training")


@pytest.fixture
def task(training, tmp_path):
    """Trains without dropout, so that programs can be compared."""
    batches = training.prepare(tmp_path, SIZES["vocabulary_size"], 3, 5)
    names = {"batches": str(batches), "weights": str(tmp_path / "weights.npz")}
    return TASK | {"dropout": 0.0} | names


def ours(training, policy="float32", jit=False):
    task = {"policy": policy, "jit": jit}
    return training.Trainee(sys.executable, "keras_training.py", 1, {0}), task


def test_ours_learns_knows_its_weights_and_says_why_it_ends(training, task):
    """One process for all three: it takes seconds to start."""
    trainee, options = ours(training)
    with trainee:
        parameters = trainee.ask(task=task | options)["parameters"]
        losses = trainee.ask(updates=40)["losses"]
        with pytest.raises(RuntimeError, match="KeyError: 'policy'"):
            trainee.ask(task={})
    assert losses[0] == pytest.approx(np.log(SIZES["vocabulary_size"]), rel=0.5)
    assert losses[-1] < losses[0] - 0.5
    named = training.torch_names(dict(np.load(task["weights"])))
    assert sum(array.size for array in named.values()) == parameters
    assert named["decoder.1.self_attention.qkv.weight"].shape == (24, 8)


@pytest.mark.skipif("PEER_PYTHON" not in os.environ, reason="needs PyTorch beside")
def test_pytorch_computes_the_same_updates(training, task):
    trainee, options = ours(training)
    with trainee:
        trainee.ask(task=task | options)
        expected = trainee.ask(updates=6)["losses"]
    data = dict(np.load(task["batches"]))
    data |= training.torch_names(dict(np.load(task["weights"])))
    path = Path(task["weights"]).with_name("torch.npz")
    np.savez(path, **data)
    task = TASK | {"dropout": 0.0, "data": str(path), "threads": 1}
    peer = Path(os.environ["PEER_PYTHON"])
    with training.Trainee(peer, "torch_training.py", 1, {0}) as trainee:
        trainee.ask(task=task | {"bfloat16": False, "compile": False})
        losses = trainee.ask(updates=6)["losses"]
    # Without smoothing both losses are the same cross-entropy.
    np.testing.assert_allclose(losses, expected, rtol=1e-3)


def test_the_bar_is_for_the_fastest_of_a_precision(training):
    seconds = {
        "ours, float32, XLA": [2.0, 2.0],
        "ours, bfloat16": [1.0, 1.0],
        "PyTorch, float32": [3.0, 3.0],
        "PyTorch, float32, compiled": [2.5, 2.5],
        "PyTorch, bfloat16": [1.5, 1.5],
    }
    rows = training.rows_of(seconds, 100, {name: [2.0, 1.0] for name in seconds})
    found = {row["program"]: (row["our best / it"], row["bar"]) for row in rows}
    assert found == {
        "ours, float32, XLA": (2.0, None),
        "ours, bfloat16": (1.0, None),
        "PyTorch, float32": (3.0, None),
        "PyTorch, float32, compiled": (2.5, 1.6),
        "PyTorch, bfloat16": (1.5, 1.1),
    }
    json.dumps(rows)
