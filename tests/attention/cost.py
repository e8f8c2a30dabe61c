"""How much memory a layer takes, read off the program it is traced to."""

import math

import numpy as np

from keras_attnvariants import backend

WIDTH = 8
LENGTH = 4096


def check_memory_is_linear(layer, **kwargs):
    """Asserts that no tensor grows faster than the length."""
    short = largest_tensor(layer, LENGTH, **kwargs)
    long = largest_tensor(layer, 2 * LENGTH, **kwargs)
    assert short < LENGTH**2 / 8
    assert long <= 2.1 * short


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
