"""The variant is swapped in, trained in mixed precision, saved and loaded."""

import re

import keras
import pytest


@pytest.mark.slow
def test_both_models_learn(recipe, tmp_path):
    path = tmp_path / "model.keras"
    few = ("--epochs", 1, "--examples", 512, "--output", path)
    output = recipe("swap_attention.py", *few)
    rows = re.findall(r"(\w+): ([\d,]+) weights, accuracy (0\.\d+)", output)
    assert [name for name, *_ in rows] == ["MultiHeadAttention", "HardCodedAttention"]
    weights = [int(number.replace(",", "")) for _, number, _ in rows]
    assert weights[1] < weights[0] * 0.6
    assert "the same predictions, True" in output
    loaded = keras.saving.load_model(path)
    assert "HardCodedAttention" in {type(layer).__name__ for layer in loaded.layers}
