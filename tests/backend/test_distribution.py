"""Computing on several devices; test_several_devices.py has the rest."""

import socket

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import distribution
from keras_attnvariants.backend.layouts import DividedModel

ON_JAX = pytest.mark.skipif(backend.name() != "jax", reason="a function for JAX")


def test_rows_count_on_several_devices_that_have_a_weight(monkeypatch):
    weights = np.array([[1, 0], [0, 0.5], [0, 0], [-0.0, 0]], "float32")
    assert distribution.counted_rows(({"ids": weights}, None, weights)) == 4
    monkeypatch.setattr(keras.distribution, "distribution", object)
    assert float(distribution.counted_rows((weights, None, weights))) == 2
    assert float(distribution.counted_rows((weights, None, weights[:, 0]))) == 1


def test_a_single_process_is_the_first_and_asks_nobody():
    assert (distribution.process_number(), distribution.process_count()) == (0, 1)
    assert distribution.in_first_process(lambda: {"a": [1]}) == {"a": [1]}


@ON_JAX
def test_a_single_process_gathers_what_it_gives():
    assert distribution.gathered({"a": [1, None], "b": "é"}) == [
        {"a": [1, None], "b": "é"}
    ]
    assert distribution.largest([3, -1]) == [3, -1]


@ON_JAX
def test_a_port_that_is_taken():
    with socket.create_server(("", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen at {address} .*another port"):
            distribution.join(address, 0, 2, 1)


def test_the_local_value_of_a_variable():
    variable = keras.Variable([1.0, 2.0])
    local = ops.convert_to_numpy(distribution.local_value(variable))
    np.testing.assert_array_equal(local, [1, 2])


def test_a_model_on_one_device_has_its_parameters_there():
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    with distribution.local_values(model):
        assert model.weights[0].shape == (3, 2)


def test_values_stay_where_nothing_is_distributed():
    values = [ops.ones(2)]
    assert distribution.place_values(values, [keras.Variable([1.0, 2.0])]) == values


def test_one_replica_is_accepted():
    distribution.check_one_replica()


@ON_JAX
def test_devices_have_names_and_are_counted():
    names = distribution.device_names(None)
    assert distribution.device_names(1) == names[:1]
    with pytest.raises(ValueError, match=f"at most {len(names)}, .* Received: 1000"):
        distribution.device_names(1000)


@ON_JAX
def test_the_reported_loss_weighs_batches_by_what_counts_them():
    def reported():
        inputs = keras.Input((1,))
        model = keras.Model(inputs, inputs)
        model.compile(loss="mse", jit_compile=True)
        distribution.weigh_batches(model)
        x = np.array([[1], [1], [2], [2]], "float32")
        weights = np.array([1, 1, 3, 0], "float32")
        return model.evaluate(x, 0 * x, 2, 0, weights, return_dict=True)["loss"]

    assert reported() == pytest.approx((1 + 6) / 2)
    with DividedModel(distribution.device_names(1), 1).scope():
        assert reported() == pytest.approx((2 * 1 + 1 * 6) / (2 + 1))
