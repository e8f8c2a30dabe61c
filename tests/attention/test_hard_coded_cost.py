"""Hard-coded attention: linear memory, constant state, half the parameters."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention

WIDTH = 8
LENGTH = 4096


def largest_tensor(layer, length, **kwargs):
    """Number of elements of the largest tensor in the traced forward pass."""
    x = np.zeros((1, length, WIDTH), "float32")
    mask = np.ones((1, length), bool)
    if not layer.built:
        layer.build(x.shape, x.shape)

    def forward(x, mask):
        return layer(x, x, query_mask=mask, value_mask=mask, **kwargs)

    if backend.name() == "tensorflow":
        import tensorflow as tf

        specs = [tf.TensorSpec(a.shape, a.dtype) for a in (x, mask)]
        graph = tf.function(forward, input_signature=specs).get_concrete_function()
        shapes = [o.shape for op in operations(graph.graph) for o in op.outputs]
        assert all(shape.is_fully_defined() for shape in shapes)
    else:
        import jax

        shapes = equation_shapes(jax.make_jaxpr(forward)(x, mask).jaxpr)
    return max(math.prod(shape) for shape in shapes)


def operations(graph):
    """Operations of a TensorFlow graph and of the functions it calls."""
    found = list(graph.get_operations())
    for function in graph._functions.values():
        found += function.graph.get_operations()
    return found


def equation_shapes(jaxpr):
    """Shapes of all results in a JAX program, inner programs included."""
    shapes = []
    for equation in jaxpr.eqns:
        shapes += [variable.aval.shape for variable in equation.outvars]
        for parameter in equation.params.values():
            inner = getattr(parameter, "jaxpr", parameter)
            shapes += equation_shapes(inner) if hasattr(inner, "eqns") else []
    return shapes


@pytest.mark.parametrize(
    "layer, causal",
    [
        (HardCodedAttention(4, offsets=(-1, 1)), False),
        (HardCodedAttention(4, offsets=(-1, 0)), True),
        (HardCodedCrossAttention(4, length_ratio=1.431), False),
        (HardCodedCrossAttention(4, length_ratio=0.963, floor=False), False),
    ],
)
def test_memory_grows_linearly(layer, causal):
    short = largest_tensor(layer, LENGTH, use_causal_mask=causal)
    long = largest_tensor(layer, 2 * LENGTH, use_causal_mask=causal)
    assert short < LENGTH**2 / 8
    assert long <= 2.1 * short


def test_learned_attention_is_seen_to_be_quadratic():
    """The measure itself: it has to find the matrix where there is one."""
    found = largest_tensor(DotProductAttention(4), LENGTH)
    assert found >= 4 * LENGTH**2


def test_huge_length_runs():
    x = ops.ones((1, 60_000, WIDTH))
    layer = HardCodedAttention(4)
    output = layer(x, x)
    # Far from the borders every position sees the same neighbourhood.
    middle = ops.convert_to_numpy(output[0, 20_000:40_000])
    np.testing.assert_allclose(middle, np.broadcast_to(middle[0], middle.shape), 1e-4)


@pytest.mark.parametrize(
    "offsets, implementation, slots",
    [((-1, 0), "gaussian", 7), ((-1, 0), "conv", 2), ((-1, 0), "index", 1)],
)
def test_ring_buffer_does_not_grow(offsets, implementation, slots):
    layer = HardCodedAttention(4, offsets=offsets, implementation=implementation)
    layer.build((None, None, WIDTH), (None, None, WIDTH))
    shapes = {
        keras.tree.flatten(layer.initial_state(2, 3, max_length))[0].shape
        for max_length in (1, 10, 1000)
    }
    assert shapes == {(2, 3, slots, 4, WIDTH // 4)}


def test_parameter_count_is_two_squares():
    for cls in (HardCodedAttention, HardCodedCrossAttention):
        layer = cls(num_heads=4)
        layer.build((None, None, WIDTH), (None, None, WIDTH))
        assert layer.count_params() == 2 * WIDTH**2
