"""Memory and work of a function, read from its traced program."""

import math

import keras
import numpy as np

from keras_attnvariants import backend

WIDTH = 8
LENGTH = 4096

# Operations of a TensorFlow graph that pass tensors on without computing any.
FREE = {"Placeholder", "Identity", "NoOp", "ReadVariableOp", "Const"}


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

    return max(tensor_sizes(forward, x, mask))


def work(function, *arrays):
    """Number of elements of all tensors that a program computes.

    A product of matrices counts by its result: only a program that multiplies by a
    matrix of its own length does more work per element, and it has to compute that
    matrix as well.
    """
    return sum(tensor_sizes(function, *arrays))


def tensor_sizes(function, *arrays):
    """Numbers of elements of the tensors that a function of nested arrays computes."""
    if backend.name() == "tensorflow":
        import tensorflow as tf

        specs = keras.tree.map_structure(
            lambda a: tf.TensorSpec(a.shape, keras.backend.standardize_dtype(a.dtype)),
            arrays,
        )
        traced = tf.function(function, autograph=False)
        graph = traced.get_concrete_function(*specs).graph
        found = [op for op in operations(graph) if op.type not in FREE]
        assert not [op.type for op in found if "While" in op.type], "hides its cost"
        outputs = [output for op in found for output in op.outputs]
        # Gradients compute the axes of a sum; their number is not known beforehand.
        outputs = [o for o in outputs if o.shape.rank != 1 or o.dtype != tf.int32]
        shapes = [output.shape for output in outputs]
        assert all(shape.is_fully_defined() for shape in shapes)
    else:
        import jax

        shapes = equation_shapes(jax.make_jaxpr(function)(*arrays).jaxpr)
    return [math.prod(shape) for shape in shapes]


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
        assert equation.primitive.name not in ("scan", "while"), "hides its cost"
        shapes += [variable.aval.shape for variable in equation.outvars]
        for parameter in equation.params.values():
            inner = getattr(parameter, "jaxpr", parameter)
            shapes += equation_shapes(inner) if hasattr(inner, "eqns") else []
    return shapes
