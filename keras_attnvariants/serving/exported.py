"""Step models with the weights of an export: stored once, and constants where it pays.

A model and what it is exported in (see `keras_attnvariants.serving.precision`) give an
`ExportedModel`; all graphs of an export are traced from its `inference_copy` alone.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import is_plain_int8
from keras_attnvariants.backend import shallow_copy
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor

# What layers read in their compute dtype, and for one purpose only.
WEIGHTS = {
    keras.layers.Dense: ("kernel", "bias"),
    keras.layers.EinsumDense: ("kernel", "bias"),
    keras.layers.Embedding: ("embeddings",),
}

_numbers = itertools.count()


class StoredWeights:
    """The weights of a model, stored once, in the dtype in which they are read.

    What a mixed policy would cast at every request is stored in the compute dtype.
    Matrices of 8-bit integers are stored as such. They become matrices of floats in the
    compute dtype once, when the exported model is loaded, unless it multiplies with
    integers.

    Args:
        model: a Keras model on TensorFlow, built.
        multiplies_integers: whether matrices of integers stay what they are.

    Attributes:
        variables: what is stored.
        dequantized: what is made of it at loading.
        bytes: the size of all weights as they are read.
    """

    def __init__(self, model: keras.Model, multiplies_integers: bool = False) -> None:
        dtypes = {id(weight): dtype for weight, dtype in weights_to_cast(model)}
        integers = [] if multiplies_integers else quantized_matrices(model)
        self.variables = [stored(w, dtypes.get(id(w))) for w in model.weights]
        self.dequantized = [Dequantized(matrix) for matrix in integers]
        self._read: dict[int, tf.Variable] = {
            id(weight): value
            for weight, value in zip(model.weights, self.variables, strict=True)
        }
        for matrix, floats in zip(integers, self.dequantized, strict=True):
            self._read[id(matrix.integers)] = floats.values
        self.bytes = sum(
            variable.dtype.size * int(np.prod(variable.shape))
            for variable in self._read.values()
        )

    def read(self, weight: Any) -> Any:
        """What is stored for a weight, as a tensor; anything else remains as it is."""
        stored = self._read.get(id(weight))
        return weight if stored is None else stored.read_value()

    def array(self, weight: Any) -> Any:
        """What is stored for a weight, as an array."""
        stored = self._read.get(id(weight))
        return weight if stored is None else stored.numpy()


def weights_to_cast(model: keras.layers.Layer) -> Iterator[tuple[keras.Variable, str]]:
    """The weights that layers read in another dtype than they have, with that dtype."""
    for layer in nested_layers(model):
        for weight in weights_of(layer):
            if weight.dtype != layer.compute_dtype:
                yield weight, layer.compute_dtype


def weights_of(layer: keras.layers.Layer) -> list[keras.Variable]:
    """The variables of floats that a layer multiplies with or adds.

    Of a quantized layer, that is the bias alone.
    """
    for kind, names in WEIGHTS.items():
        if isinstance(layer, kind):
            quantized = layer.quantization_mode is not None
            found = [getattr(layer, n) for n in names if not quantized or n == "bias"]
            return [weight for weight in found if isinstance(weight, keras.Variable)]
    return []


@dataclass(frozen=True)
class Quantized:
    """A matrix of 8-bit integers that a layer multiplies with.

    Attributes:
        integers: int8 `[I, O]`, or `[O, I]` if `transposed`.
        scale: `[O]`, integers per unit of the floats that they stand for.
        transposed: whether the integers are transposed.
        dtype: in which the layer computes.
    """

    integers: keras.Variable
    scale: keras.Variable
    transposed: bool
    dtype: str

    def floats(self) -> Tensor:
        """The floats that the integers stand for, in the shape of these."""
        scale = ops.cast(self.scale.value, "float32")
        floats = ops.cast(self.integers.value, "float32")
        floats /= scale[:, None] if self.transposed else scale
        return ops.cast(floats, self.dtype)


def quantized_matrices(model: keras.layers.Layer) -> list[Quantized]:
    """The quantized matrices that may be multiplied as floats."""
    layers = [layer for layer in nested_layers(model) if is_plain_int8(layer)]
    return [
        Quantized(layer.kernel, layer.kernel_scale, False, layer.compute_dtype)
        if isinstance(layer, Dense)
        else Quantized(
            layer.embeddings, layer.embeddings_scale, True, layer.compute_dtype
        )
        for layer in layers
    ]


def stored(weight: keras.Variable, dtype: str | None) -> tf.Variable:
    """The variable of a weight, or a copy of it in another dtype."""
    if dtype is None:
        return weight.value
    return tf.Variable(tf.cast(weight.value, dtype), trainable=False)


class Dequantized(tf.saved_model.experimental.TrackableResource):
    """A matrix of floats that is made from one of 8-bit integers at loading.

    It is not freed with what was loaded, because signatures may outlive that.

    Args:
        matrix: the integers and their scale.

    Attributes:
        values: the floats, as functions that are traced here read them.
    """

    def __init__(self, matrix: Quantized) -> None:
        super().__init__()
        self.matrix = matrix
        self.values = tf.Variable(matrix.floats(), trainable=False)
        self.name = f"dequantized_{next(_numbers)}"
        # The base class makes the handle when it is first asked for, and keeps it.
        self.handle = self.resource_handle

    def _create_resource(self) -> Any:
        if tf.executing_eagerly():
            return self.values.handle
        # Found by its name in a session; loaded in Python, it gets another each time.
        dtype, shape = self.values.dtype, self.values.shape
        return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=self.name)

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(
            resource=self.resource_handle, value=self.matrix.floats()
        )


# Of the weights in a graph, which may have 2 GB.
MAX_CONSTANT_BYTES = 1_500_000_000

ATTRIBUTES = (
    "vocabulary_size",
    "source_vocabulary_size",
    "max_length",
    "pad_id",
    "bos_id",
    "eos_id",
    "unk_id",
    "search_settings",
    "embeddings",
)


def copy_attributes(model: Any, other: Any) -> None:
    """Gives another object what a step model has besides its methods."""
    for name in ATTRIBUTES:
        if hasattr(model, name):
            setattr(other, name, getattr(model, name))


class ExportedModel:
    """A step model that computes with stored weights.

    Args:
        model: a Keras model.
        weights: its weights, stored.
        constant: whether decoding steps have weights as constants of the graph. oneDNN
            then arranges them for the processor once, and a loop does not hand them
            on from step to step; with few sentences, that takes as long as the
            products. The graph is larger by the weights of the decoder.
    """

    def __init__(
        self, model: keras.Model, weights: StoredWeights, constant: bool
    ) -> None:
        copy_attributes(model, self)
        self.model = model
        self.weights = weights
        self.steps: Any = None
        if constant and weights.bytes <= MAX_CONSTANT_BYTES:
            self.steps = inference_copy(model, weights.array, fixed=True)

    def inference_copy(self) -> Any:
        """What computes in a graph that is being traced."""
        reading = inference_copy(self.model, self.weights.read, fixed=True)
        return reading if self.steps is None else TwoForms(reading, self.steps)


class TwoForms:
    """A step model of two copies: one encodes, the other makes the steps.

    Sources are encoded once for each request, and steps are many.
    """

    def __init__(self, encoder: Any, steps: Any) -> None:
        copy_attributes(encoder, self)
        self.encoder = encoder
        self.steps = steps

    def encode(self, source_ids: Tensor) -> NestedTensors:
        """As of the model."""
        return self.encoder.encode(source_ids)

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> NestedTensors:
        """As of the model."""
        return self.steps.initial_state(context, beams, max_length)

    def step(self, *args: Any, **options: Any) -> tuple[Any, ...]:
        """As of the model."""
        outputs: tuple[Any, ...] = self.steps.step(*args, **options)
        return outputs


class LimitedLogits:
    """Token embeddings with the logits of some tokens of each sentence.

    Args:
        embeddings: `TokenEmbeddings`.
        columns: what its method `columns` returned for these tokens.
    """

    def __init__(self, embeddings: Any, columns: dict[str, Tensor]) -> None:
        self.embed_step = embeddings.embed_step
        self.columns = columns

    def logits(self, x: Tensor) -> Tensor:
        """`[B, K, hidden_dim]` to `[B, K, W]`."""
        logits = x @ self.columns["kernel"]
        return logits + self.columns["bias"] if "bias" in self.columns else logits


def limited_step(model: Any, columns: dict[str, Tensor]) -> Any:
    """The method `step` of a copy, for the tokens of some columns of the logits."""
    steps = model.steps if isinstance(model, TwoForms) else model
    limited = LimitedLogits(steps.embeddings, columns)
    return shallow_copy(steps, embeddings=limited).step
