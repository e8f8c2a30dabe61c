"""Divided parts of models; test_several_devices.py trains such models."""

from types import SimpleNamespace

import pytest

import keras_attnvariants as kav
from keras_attnvariants.backend.layouts import PARTS
from keras_attnvariants.backend.layouts import DividedModel


@pytest.fixture(scope="module")
def divided():
    devices = [f"cpu:{number}" for number in range(4)]
    try:
        return DividedModel(devices, parts=2)
    except AttributeError:
        pytest.skip("this release of Keras divides models on JAX alone")


def axes(divided, path, *shape):
    variable = SimpleNamespace(path=path, shape=shape)
    return divided.get_variable_layout(variable).axes


@pytest.mark.parametrize("tied", ["all", "none"])
def test_all_matrices_of_a_transformer_are_divided(divided, tied):
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(
        20, 1, 8, 16, attention, attention, attention, tie_embeddings=tied
    )
    for variable in model.trainable_variables:
        found = divided.get_variable_layout(variable).axes
        assert found.count(PARTS) == (len(variable.shape) == 2), variable.path


def test_products_follow_each_other_without_exchange(divided):
    block = "transformer/encoder_0"
    assert axes(divided, f"{block}/feed_forward/intermediate/kernel", 8, 16)[1]
    assert axes(divided, f"{block}/feed_forward/output/kernel", 16, 8)[0]
    assert axes(divided, f"{block}/self_attention/query/kernel", 8, 8)[1]
    assert axes(divided, f"{block}/self_attention/output/kernel", 8, 8)[0]


def test_sizes_that_cannot_be_divided(divided):
    table = "transformer/embeddings/target/embeddings"
    assert axes(divided, table, 20, 7) == (PARTS, None)
    assert axes(divided, table, 21, 8) == (None, PARTS)
    assert axes(divided, table, 21, 7) == (None, None)
    query = "transformer/encoder_0/self_attention/query/kernel"
    assert axes(divided, query, 2, 8, 8) == (None, None, None)


def test_groups_of_devices(divided):
    assert divided.num_model_replicas == 2
    assert divided.device_mesh.devices.tolist() == [
        ["cpu:0", "cpu:1"],
        ["cpu:2", "cpu:3"],
    ]
