"""One program per case, and its results for the inputs of the conformance tests.

A program computes at once everything that the tests look at (output with and without
scores, scores, gradients), so that XLA compiles each case only once. Its results and
those of the references are kept: several tests compare with the same numbers.
"""

import functools
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from tests import reference
from tests.attention.conformance import BATCH
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import built
from tests.attention.conformance import inputs
from tests.attention.conformance import normal
from tests.attention.conformance import to_numpy
from tests.reference.differences import directional_derivative

PROJECTION = normal(np.random.default_rng(99), BATCH, LENGTH, WIDTH)
DIRECTIONS = 3
ORDER = np.array([2, 0, 1])
# Positions after which the inputs of each sentence change, so that each is tested.
CUTS = {"later": (0, 1, 2), "latest": (3, 0, 1)}


@dataclass(frozen=True)
class Result:
    """The outputs of one run of a program, as float32 NumPy arrays."""

    output: np.ndarray
    plain: np.ndarray
    scores: np.ndarray
    gradients: dict[str, np.ndarray]


@functools.cache
def result(case, mode, name="usual") -> Result:
    """The outputs of the program of a case for inputs of `named_inputs`."""
    return program(case, mode)(*named_inputs(case, name))


def named_inputs(case, name):
    """Query, value and their masks.

    * `usual`: with padding in both;
    * `permuted`: the sentences in another order;
    * `rubbish`: other numbers at padded positions;
    * `no source`: the second sentence has no real key;
    * `masked queries`: padding in the queries only;
    * `no padding`;
    * `later`, `latest`: no padding, and other inputs after a position of `CUTS`.
    """
    query, value, query_mask, value_mask = inputs(case)
    if name == "permuted":
        return tuple(array[ORDER] for array in (query, value, query_mask, value_mask))
    if name == "rubbish":
        size = 1e3 if case.dtype == "mixed_float16" else 1e4
        row = np.where(np.arange(WIDTH) % 2, size, -size).astype("float32")
        query = np.where(query_mask[..., None], query, row)
        value = np.where(value_mask[..., None], value, row)
    if name in ("no source", "no padding", *CUTS):
        query_mask = np.ones_like(query_mask)
    if name in ("masked queries", "no padding", *CUTS):
        value_mask = np.ones_like(value_mask)
    if name == "no source":
        value_mask[1] = False
    if name in CUTS:
        after = np.arange(LENGTH) > np.array(CUTS[name])[:, None]
        query = query + 3 * after[..., None].astype("float32")
    return query, value, query_mask, value_mask


@functools.cache
def expected(case):
    """Output and scores of the reference for the usual inputs, whatever the dtype."""
    if case.dtype != "float32":
        return expected(replace(case, dtype="float32"))
    query, value, query_mask, value_mask = inputs(case)
    masks = {"query_mask": query_mask, "value_mask": value_mask}
    return case.expected(built(case), query, value, **masks)


@functools.cache
def expected_slopes(case):
    """Triples of a name, a direction and the slope of the loss along it.

    The loss is `sum(output * PROJECTION)` of the reference for the usual inputs, the
    same in all dtypes; the names are those of the inputs and of all weights.
    """
    if case.dtype != "float32":
        return expected_slopes(replace(case, dtype="float32"))
    query, value, query_mask, value_mask = inputs(case)
    arrays = {
        "query": query.astype("float64"),
        "value": value.astype("float64"),
        **reference.layer_weights(built(case)),
    }
    config = built(case).get_config()

    def loss(arrays):
        arrays = dict(arrays)
        output, _ = case.reference(
            config,
            query=arrays.pop("query"),
            value=arrays.pop("value"),
            weights=arrays,
            query_mask=query_mask,
            value_mask=value_mask,
        )
        return np.sum(output * PROJECTION)

    rng = np.random.default_rng(5)
    slopes = []
    for name, array in arrays.items():
        for _ in range(DIRECTIONS):
            direction = rng.normal(size=array.shape)
            # Unit length: the slope is then as large as the gradient's entries.
            direction /= np.linalg.norm(direction)
            slope = directional_derivative(loss, arrays, name, direction)
            slopes.append((name, direction, slope))
    return slopes


@functools.cache
def program(case, mode):
    """Function of `(query, value, query_mask, value_mask)` that gives a `Result`.

    The gradients are those of `sum(output * PROJECTION)`.
    """
    layer = built(case)

    def everything(query, value, query_mask, value_mask):
        masks = {"query_mask": query_mask, "value_mask": value_mask}

        def call(query, value):
            return case.call(layer, query, value, **masks)

        output, scores = case.call_with_scores(layer, query, value, **masks)
        plain, gradients = output_and_gradients(layer, call, query, value)
        return {
            "output": ops.cast(output, "float32"),
            "plain": ops.cast(plain, "float32"),
            "scores": ops.cast(scores, "float32"),
            "gradients": {k: ops.cast(v, "float32") for k, v in gradients.items()},
        }

    compiled = backend.jit(everything) if mode == "xla" else everything

    def run(*arrays) -> Result:
        tensors = [ops.convert_to_tensor(array) for array in arrays]
        return Result(**keras.tree.map_structure(to_numpy, compiled(*tensors)))

    return run


def projected(output):
    return ops.sum(ops.cast(output, "float32") * PROJECTION)


def output_and_gradients(
    layer, call, query, value, loss=projected
) -> tuple[Any, dict[str, Any]]:
    """The output, and the gradients of a loss for inputs and weights by name."""
    names = ["query", "value", *(short_name(w) for w in layer.trainable_weights)]
    if backend.name() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch([query, value])
            output = call(query, value)
            total = loss(output)
        targets = [query, value, *(w.value for w in layer.trainable_weights)]
        zero = tf.UnconnectedGradients.ZERO
        found = tape.gradient(total, targets, unconnected_gradients=zero)
    else:
        import jax

        def loss_and_output(query, value, *weights):
            pairs = list(zip(layer.trainable_weights, weights, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                output = call(query, value)
            return loss(output), output

        weights = [w.value for w in layer.trainable_weights]
        arguments = (query, value, *weights)
        found, output = jax.grad(
            loss_and_output, argnums=tuple(range(len(arguments))), has_aux=True
        )(*arguments)
    return output, dict(zip(names, found, strict=True))


def short_name(weight) -> str:
    """`"<projection>/<kernel or bias>"`, as the references call it."""
    return "/".join(weight.path.split("/")[-2:])
