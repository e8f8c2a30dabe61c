"""Weights of a trained model in another one: what means the same, and nothing else."""

import numpy as np
import pytest
from keras import ops

import keras_attnvariants as kav
from keras_attnvariants.models.transfer import take_weights


def transformer(attention, width=8, layers=2, cross=None):
    return kav.Transformer(
        20, layers, width, 16, attention, attention, cross or attention, max_length=16
    )


def learned(heads=2):
    return kav.DotProductAttention(num_heads=heads)


def logits(model):
    ids = np.array([[5, 6, 7, 3]])
    return ops.convert_to_numpy(model({"source_ids": ids, "target_ids": ids}))


def values(model):
    """The weights by their path, without the name of the model."""
    return {
        weight.path.partition("/")[2]: ops.convert_to_numpy(weight)
        for weight in model.weights
    }


def test_an_equal_model_computes_the_same():
    old, new = transformer(learned()), transformer(learned())
    assert not np.allclose(logits(old), logits(new))
    found = take_weights(old, new)
    assert (found.left, found.new) == ({}, {})
    assert sum(found.taken.values()) == new.count_params()
    np.testing.assert_array_equal(logits(old), logits(new))


def test_two_models_share_no_arrays():
    # On JAX, training one of them would delete the arrays of the other.
    old = transformer(learned())
    for attention in (learned(), kav.AlibiAttention(num_heads=2)):
        new = transformer(attention, cross=learned())
        take_weights(old, new)
        theirs = {id(weight.value) for weight in old.weights}
        assert not theirs & {id(weight.value) for weight in new.weights}


def test_fixed_weights_take_values_and_outputs():
    old = transformer(learned())
    fixed = kav.HardCodedAttention(num_heads=2, offsets=(-1, 0))
    new = transformer(fixed, cross=learned())
    found = take_weights(old, new)
    assert found.new == {}
    assert set(found.left) == {
        f"{side}_{block}/self_attention/{name}/kernel"
        for side in ("encoder", "decoder")
        for block in (0, 1)
        for name in ("query", "key")
    }
    before, after = values(old), values(new)
    for path, value in after.items():
        np.testing.assert_array_equal(value, before[path], err_msg=path)


def test_attention_with_other_heads_begins_anew():
    old, new = transformer(learned(2)), transformer(learned(4))
    start = values(new)
    found = take_weights(old, new)
    assert found.new.keys() == found.left.keys()
    assert set(found.new) == {path for path in start if "attention/" in path} != set()
    for path in found.new:
        np.testing.assert_array_equal(values(new)[path], start[path])


def test_a_deeper_model_takes_the_blocks_that_are_there():
    old, new = transformer(learned(), layers=1), transformer(learned(), layers=2)
    found = take_weights(old, new)
    assert {path.partition("/")[0] for path in found.new} == {"encoder_1", "decoder_1"}
    assert found.left == {}


def test_a_model_of_another_width_has_nothing_in_common():
    with pytest.raises(ValueError, match=r"embeddings \[20, 12\].*\[20, 8\]"):
        take_weights(transformer(learned()), transformer(learned(), width=12))


def test_the_table_counts_elements_by_part():
    old = transformer(learned(), layers=1)
    fixed = kav.HardCodedAttention(num_heads=2, offsets=(-1, 0))
    new = transformer(fixed, layers=1, cross=learned())
    head, *rows = str(take_weights(old, new)).splitlines()
    assert head.split() == ["part", "taken", "left", "new"]
    cells = {name: counts for name, *counts in map(str.split, rows)}
    assert cells["embeddings"] == ["160", "0", "0"]
    assert cells["encoder_0"][1:] == ["128", "0"]
    assert list(cells)[-1] == "all"
