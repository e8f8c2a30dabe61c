"""The methods of a step model as functions of named tensors.

Formats other than SavedModels store these three functions as graphs; the search is a
separate program. The weights in the graphs are float32 constants, and all operators
exist outside of TensorFlow.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.attention.cache import HISTORY
from keras_attnvariants.attention.cache import with_common_histories
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor

# Prefixes of the names of the functions' inputs and outputs.
CONTEXT, STATE, NEXT = "context", "state", "next"


class StepFunctions:
    """`encode`, `initial_state` and `step` as functions of named tensors.

    Args:
        model: a step model that computes in float32, built on TensorFlow.
        beams: number of hypotheses of a sentence, `K`.

    Attributes:
        functions: the three functions by name: the graph, and names for its inputs and
            outputs in their order.
    """

    def __init__(self, model: Any, beams: int) -> None:
        self.original, self.weights, self.beams = model, StoredWeights(model), beams
        ids = tf.TensorSpec([None, None], tf.int32, "source_ids")
        length = tf.TensorSpec([], tf.int32, "max_length")
        tokens = tf.TensorSpec([None, beams], tf.int32, "tokens")
        parents = tf.TensorSpec([None, beams], tf.int32, "parents")
        position = tf.TensorSpec([], tf.int32, "position")
        self.context: Any = None
        self.state: Any = None
        self.functions = {"encode": traced(self.encode, [ids])}
        context = specs(CONTEXT, self.context)
        self.functions["initial_state"] = traced(self.initial_state, [length, *context])
        state = specs(STATE, self.state)
        inputs = [tokens, parents, position, *context, *state]
        self.functions["step"] = traced(self.step, inputs)

    def model(self) -> Any:
        """The copy of the model that a graph is traced from, while it is traced."""

        def values(x: Any) -> Any:
            return x if isinstance(x, np.ndarray) else self.weights.read(x)

        return inference_copy(self.original, values, pads=False)

    def encode(self, source_ids: Tensor) -> dict[str, Tensor]:
        """The context of source ids, int32 `[B, S]`."""
        self.context = self.model().encode(source_ids)
        return named(CONTEXT, self.context)

    def initial_state(self, max_length: Tensor, *context: Tensor) -> dict[str, Tensor]:
        """The state of all hypotheses before the first position."""
        state = self.model().initial_state(
            packed(CONTEXT, self.context, context), self.beams, max_length
        )
        self.state = with_common_histories(state)
        return named(STATE, self.state)

    def step(
        self, tokens: Tensor, parents: Tensor, position: Tensor, *tensors: Tensor
    ) -> dict[str, Tensor]:
        """Log probabilities `[B, K, V]` of the next tokens, and what changed.

        Args:
            tokens: int32 `[B, K]`, the last tokens.
            parents: int32 `[B, K]`, the hypotheses of the step before that they
                continue.
            position: int32 scalar, from 0.
            tensors: those of the context, then those of the state.
        """
        count = len(named(CONTEXT, self.context))
        context = packed(CONTEXT, self.context, tensors[:count])
        state = packed(STATE, self.state, tensors[count:])
        state = with_common_histories(in_order_of(parents, state))
        logits, new = self.model().step(tokens, position, state, context)
        before, after = (named(NEXT, tree) for tree in (state, new))
        changed = {name: x for name, x in after.items() if x is not before[name]}
        logits = ops.cast(logits, "float32")
        return {"log_probs": ops.log_softmax(logits, axis=-1), **changed}


def names(kind: str, tree: NestedTensors) -> list[str]:
    """A name for each tensor of a context or state; a shared history has one name.

    Args:
        kind: prefix of the names.
        tree: nested tensors.
    """
    histories: dict[int, str] = {}
    found = []
    for path, x in keras.tree.flatten_with_path(tree):
        name = ".".join(map(str, (kind, *path)))
        if path[-1] == HISTORY:
            name = histories.setdefault(id(x), name)
        found.append(name)
    return found


def named(kind: str, tree: NestedTensors) -> dict[str, Tensor]:
    """The tensors of a context or state by name."""
    return dict(zip(names(kind, tree), keras.tree.flatten(tree), strict=True))


def packed(kind: str, tree: NestedTensors, tensors: Sequence[Tensor]) -> NestedTensors:
    """The tensors of `named` in their original structure."""
    given = dict(zip(named(kind, tree), tensors, strict=True))
    return keras.tree.pack_sequence_as(
        tree, [given[name] for name in names(kind, tree)]
    )


def specs(kind: str, tree: NestedTensors) -> list[tf.TensorSpec]:
    """The types of inputs for the tensors of `named`."""
    return [
        tf.TensorSpec(x.shape, x.dtype, name) for name, x in named(kind, tree).items()
    ]


def in_order_of(parents: Tensor, state: NestedTensors) -> NestedTensors:
    """A state in which hypothesis `k` continues from `parents[:, k]`."""
    new = [
        x if SHARED in path else gather_beams(x, parents)
        for path, x in keras.tree.flatten_with_path(state)
    ]
    return keras.tree.pack_sequence_as(state, new)


def traced(
    function: Callable[..., dict[str, Tensor]], inputs: list[tf.TensorSpec]
) -> tuple[Any, list[str], list[str]]:
    """The graph of a function, without operators that only TensorFlow has.

    Returns:
        The graph, and names for its inputs and outputs in their order.
    """
    # A graph for XLA has none: it writes caches by general operators.
    graph = tf.function(function, inputs, autograph=False, jit_compile=True)
    found = graph.get_concrete_function()
    # TensorFlow lists the entries of a dict in the order of their keys.
    return found, [spec.name for spec in inputs], sorted(found.structured_outputs)
