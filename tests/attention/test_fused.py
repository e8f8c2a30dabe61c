"""Fused attention equals plain attention in value and gradient; its conditions."""

import keras
import numpy as np
import pytest

from keras_attnvariants.attention import AlibiAttention
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import LocalAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import dot_product
from keras_attnvariants.backend import softmax
from tests.attention.conformance import BATCH
from tests.attention.conformance import LENGTH
from tests.attention.conformance import TOLERANCES
from tests.attention.conformance import WIDTH
from tests.attention.conformance import Case
from tests.attention.conformance import built
from tests.attention.conformance import inputs
from tests.attention.conformance import near
from tests.attention.conformance import to_numpy
from tests.attention.programs import output_and_gradients

NAMES = ("DotProductAttention", "AlibiAttention", "RelativeBiasAttention")


@pytest.fixture
def fused(monkeypatch):
    """Lets all backends use fused attention; returns the calls of the operation."""
    calls, operation = [], dot_product.fused_attention

    def counted(*arguments):
        calls.append(arguments)
        return operation(*arguments)

    monkeypatch.setattr(dot_product, "has_fused_attention", lambda: True)
    monkeypatch.setattr(dot_product, "fused_attention", counted)
    return calls


def masks_of(case, kind):
    """Arguments of a call, in which the second sentence may have no real key."""
    mask = inputs(case)[3].copy()
    if kind == "padding":
        return {"value_mask": mask}
    if kind == "no source":
        mask[1] = False
        return {"value_mask": mask, "use_causal_mask": case.causal}
    pattern = np.random.default_rng(0).random((BATCH, LENGTH, LENGTH)) < 0.5
    pattern[0, 2] = False
    return {"attention_mask": pattern} if kind == "pattern" else {}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("kind", ["none", "padding", "no source", "pattern"])
@pytest.mark.parametrize("role", ["encoder", "decoder"])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_plain_attention(
    name, role, kind, dtype, monkeypatch
):
    case = Case(name, role, 0, dtype)
    layer, x = built(case), keras.ops.convert_to_tensor(inputs(case)[0])

    def call(query, value):
        return case.call(layer, query, value, **masks_of(case, kind))

    plain = output_and_gradients(layer, call, x, x)
    monkeypatch.setattr(dot_product, "has_fused_attention", lambda: True)
    found = output_and_gradients(layer, call, x, x)
    near(as_float(found[0]), as_float(plain[0]), TOLERANCES[dtype])
    if kind == "no source":
        assert not as_float(found[0])[1].any() or layer.use_bias
        assert not as_float(found[1]["value"])[1].any()
    assert set(found[1]) == set(plain[1])
    for key, gradient in plain[1].items():
        near(as_float(found[1][key]), as_float(gradient), TOLERANCES[dtype])


def as_float(x):
    return to_numpy(keras.ops.cast(x, "float32"))


def make(cls=DotProductAttention, **options):
    layer = cls(4, **options)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    return layer


X = np.random.default_rng(1).normal(size=(2, 6, WIDTH)).astype("float32")


def test_weights_do_not_change_the_output(fused):
    layer = make(AlibiAttention)
    plain, (output, weights) = layer(X, X), layer(X, X, return_attention_scores=True)
    assert len(fused) == 2
    np.testing.assert_array_equal(to_numpy(output), to_numpy(plain))
    near(to_numpy(weights).sum(-1), np.ones((2, 4, 6)), 1e-6)


def test_dropped_weights_and_other_equations_are_not_fused(fused):
    make(dropout=0.5)(X, X, training=True)
    make(key_dim=3, value_dim=5)(X, X)
    make(LocalAttention)(X, X)
    make(RecurrentCrossAttention)(X, X)
    assert fused == []
    make(dropout=0.5)(X, X)
    assert len(fused) == 1


def test_the_option_reaches_the_kernel(fused, monkeypatch):
    monkeypatch.setattr(dot_product, "fused_attention", lambda *a: fused.append(a))
    # Other tests may leave it changed in Keras.
    monkeypatch.setattr(keras.config, "is_flash_attention_enabled", lambda: None)
    for flash in (None, False, True):
        layer = make(flash_attention=flash)
        call = dot_product.Call(X, X)
        layer.attend(call)
        assert fused[-1][-1] is flash
        assert layer.get_config()["flash_attention"] is flash


@pytest.mark.parametrize(
    ("device", "keys", "flash"),
    [("gpu", 511, False), ("gpu", 512, None), ("cpu", 511, None), ("tpu", 512, False)],
)
def test_kernels_of_gpus_take_many_keys_and_masks_of_every_query(
    device, keys, flash, monkeypatch
):
    calls = []
    monkeypatch.setattr(softmax, "device_kind", lambda: device)
    monkeypatch.setattr(
        softmax.ops,
        "dot_product_attention",
        lambda *_, **options: calls.append(options),
    )
    q, k = (keras.ops.zeros((2, length, 4, 8)) for length in (3, keys))
    mask = keras.ops.ones((2, 1, keys), "bool")
    softmax.fused_attention((q, k, k), mask, True, None, None)
    assert calls[0]["flash_attention"] is flash
    assert calls[0]["mask"].shape == (2, 1, 3, keys)
    softmax.fused_attention((q, k, k), None, True, None, True)
    assert calls[1]["flash_attention"] is True and calls[1]["mask"] is None


def test_cpus_and_tensorflow_compute_it_as_before(monkeypatch):
    monkeypatch.setattr(dot_product, "fused_attention", None)
    make()(X, X)


def test_dropout_is_refused_with_the_kernel_as_in_keras():
    with pytest.raises(ValueError, match="`dropout` must be 0 .*Received: dropout=0.1"):
        make(flash_attention=True, dropout=0.1)
    for cls in (LocalAttention, RecurrentCrossAttention):
        with pytest.raises(ValueError, match=f"`flash_attention` .*{cls.__name__}"):
            make(cls, flash_attention=True)
