"""Operations within and outside of the loop over target positions."""

import numpy as np
import pytest

from keras_attnvariants import backend
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences

# Sizes that no shape has by chance.
LENGTH, SOURCE_LENGTH, KEY_DIM, VALUE_DIM, HEADS = 23, 13, 5, 7, 2
WIDTH = 19


def loops(name):
    """Shapes of all tensors in the body of every loop in the forward pass."""
    options = {"key_dim": KEY_DIM, "value_dim": VALUE_DIM}
    layer = RecurrentCrossAttention(HEADS, name, **options)
    query = np.zeros((1, LENGTH, WIDTH), "float32")
    value = np.zeros((1, SOURCE_LENGTH, WIDTH), "float32")
    layer.build(query.shape, value.shape)
    if backend.name() == "tensorflow":
        return graph_loops(layer, query, value)
    import jax

    program = jax.make_jaxpr(lambda query, value: layer(query, value))(query, value)
    return [shapes_in(body) for body in scan_bodies(program.jaxpr)]


def graph_loops(layer, query, value):
    import tensorflow as tf

    specs = [tf.TensorSpec(a.shape, a.dtype) for a in (query, value)]
    forward = tf.function(lambda *inner: layer(*inner), input_signature=specs)
    graph = forward.get_concrete_function().graph
    bodies = [
        graph._get_function(operation.get_attr("body").name).graph
        for operation in graph.get_operations()
        if operation.type in ("While", "StatelessWhile")
    ]
    return [
        {tuple(output.shape) for op in body.get_operations() for output in results(op)}
        for body in bodies
    ]


def results(operation):
    """Outputs of known shape, except tensors that merely come from outside the loop."""
    if operation.type in ("Placeholder", "Const"):
        return []
    return [output for output in operation.outputs if output.shape.rank is not None]


def inner_programs(equation):
    for parameter in equation.params.values():
        inner = getattr(parameter, "jaxpr", parameter)
        if hasattr(inner, "eqns"):
            yield inner


def scan_bodies(program):
    for equation in program.eqns:
        for inner in inner_programs(equation):
            if equation.primitive.name == "scan":
                yield inner
            else:
                yield from scan_bodies(inner)


def shapes_in(program):
    shapes = set()
    for equation in program.eqns:
        shapes |= {variable.aval.shape for variable in equation.outvars}
        for inner in inner_programs(equation):
            shapes |= shapes_in(inner)
    return shapes


def test_accumulated_energies_multiply_no_matrices():
    """Their largest tensor is one row of energies with its padding."""
    (shapes,) = loops("accumulated_energies")
    assert (1, HEADS, 1, SOURCE_LENGTH) in shapes
    padded = SOURCE_LENGTH + 2 * recurrences.AccumulatedEnergies().radius
    assert max(np.prod(shape) for shape in shapes) == HEADS * padded


@pytest.mark.parametrize(
    "name", ["weights", "accumulated_weights", "subtracted_weights"]
)
def test_loops_over_weights_multiply_no_matrices(name):
    """Their largest tensor is one row of weights."""
    (shapes,) = loops(name)
    assert (1, HEADS, 1, SOURCE_LENGTH) in shapes
    assert max(np.prod(shape) for shape in shapes) == HEADS * SOURCE_LENGTH
    sizes = {size for shape in shapes for size in shape}
    assert not sizes & {WIDTH, KEY_DIM, VALUE_DIM}


@pytest.mark.parametrize(
    "name", ["expanded_shared", "expanded_full", "expanded_head", "expanded_head_key"]
)
def test_loops_of_expanded_lists_do_not_see_the_source(name):
    (shapes,) = loops(name)
    sizes = {size for shape in shapes for size in shape}
    assert VALUE_DIM in sizes
    # Nor the output: successive projections are multiplied beforehand.
    assert not sizes & {SOURCE_LENGTH, WIDTH}


def test_a_loop_over_contexts_projects_nothing():
    (shapes,) = loops("context")
    sizes = {size for shape in shapes for size in shape}
    assert SOURCE_LENGTH in sizes
    assert not sizes & {WIDTH, KEY_DIM, VALUE_DIM}
