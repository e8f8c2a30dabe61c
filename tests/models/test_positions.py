"""Positions against their formulas, and the ends of their tables."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants.models import ConcatenatedPositions
from keras_attnvariants.models import SinusoidalPositions
from tests.models import naive
from tests.models import tiny

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.mark.parametrize("width", [4, 10, 16])
def test_sinusoids_are_those_of_the_formula(width):
    x = np.random.default_rng(0).normal(size=(2, 9, width)).astype("float32")
    result = tiny.to_numpy(SinusoidalPositions(20)(x))
    tiny.near(result, x + naive.sinusoids(9, width), 1e-6)


def test_the_slowest_sinusoid_has_a_wavelength_of_20000_pi():
    table = naive.sinusoids(3, 16)
    assert table[2, 7] == pytest.approx(np.sin(2 / 10000))
    assert table[2, 0] == pytest.approx(np.sin(2))


@pytest.mark.parametrize("start", [4, ops.convert_to_tensor(4, "int32")])
def test_positions_continue_from_the_start_given(start):
    for layer in (SinusoidalPositions(12), ConcatenatedPositions(4, max_position=6)):
        x = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")
        whole = tiny.to_numpy(layer(x))
        part = tiny.to_numpy(layer(x[:, 4:6], start=start))
        tiny.near(part, whole[:, 4:6], 1e-6)


@pytest.mark.parametrize("width", [2, 7])
def test_sinusoids_need_an_even_width(width):
    with pytest.raises(ValueError, match=f"even.*Received: width={width}"):
        SinusoidalPositions(8).build((None, None, width))


def test_concatenated_positions_share_the_last_embedding():
    layer = ConcatenatedPositions(position_dim=3, max_position=4)
    x = np.zeros((2, 8, 5), "float32")
    result = tiny.to_numpy(layer(x))
    assert result.shape == (2, 8, 8)
    assert not result[..., :5].any()
    table = ops.convert_to_numpy(layer.embedding.embeddings)
    expected = table[[0, 1, 2, 3, 4, 4, 4, 4]]
    tiny.near(result[..., 5:], np.stack([expected, expected]), 1e-6)
    assert layer.compute_output_shape((None, 8, 5)) == (None, 8, 8)


@pytest.mark.parametrize(
    "layer", [SinusoidalPositions(5), ConcatenatedPositions(4, max_length=5)]
)
def test_a_position_beyond_the_table_is_refused(layer):
    x = np.zeros((1, 6, 8), "float32")
    assert layer(x[:, :5]).shape[1] == 5
    for inputs, start in [(x, 0), (x[:, :2], 4)]:
        with pytest.raises(ValueError, match="`max_length`=5.*Received: length 6"):
            layer(inputs, start=start)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float16"])
def test_positions_keep_the_dtype(dtype):
    for cls in (SinusoidalPositions, ConcatenatedPositions):
        layer = cls(dtype=dtype)
        x = ops.ones((1, 3, 8), layer.compute_dtype)
        assert ops.dtype(layer(x)) == layer.compute_dtype


def test_configs_survive():
    for layer in (
        SinusoidalPositions(99),
        ConcatenatedPositions(7, max_position=5, max_length=66),
    ):
        config = keras.saving.serialize_keras_object(layer)
        again = keras.saving.deserialize_keras_object(config)
        assert again.get_config() == layer.get_config()


def test_sinusoids_without_the_endpoint_are_those_of_the_paper():
    layer = SinusoidalPositions(9, endpoint=False)
    layer.build((None, None, 8))
    positions, m = np.arange(9)[:, None], np.arange(4)
    angles = positions / 10000 ** (2 * m / 8)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    tiny.near(tiny.to_numpy(layer.table), expected, 1e-6)
    again = SinusoidalPositions.from_config(layer.get_config())
    assert not again.endpoint and SinusoidalPositions().endpoint
