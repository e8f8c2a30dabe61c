"""Step models that read stored weights, or constants where that is faster.

All graphs of an export are traced from the `inference_copy` of an `ExportedModel`.
"""

import itertools
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import ReversibleEmbedding
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import is_plain_int8
from keras_attnvariants.backend import shallow_copy
from keras_attnvariants.backend import shared_tensor
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.backend.products import needs_padding
from keras_attnvariants.backend.products import padded
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.utils.typing import Tensor

# Weights that layers read in their compute dtype, and for one purpose only.
WEIGHTS = {
    keras.layers.Dense: ("kernel", "bias"),
    keras.layers.EinsumDense: ("kernel", "bias"),
    keras.layers.Embedding: ("embeddings",),
}

# Number of entries of the largest float32 embedding that is multiplied as a constant.
MAX_ARRANGED = 2**20

# Largest size of the weights in a graph, which may have 2 GB.
MAX_CONSTANT_BYTES = 1_500_000_000

_numbers = itertools.count()


class StoredWeights:
    """The weights of a model, stored once, in the dtype in which they are read.

    Weights that a mixed policy would cast at every request are stored in the compute
    dtype. Matrices of 8-bit integers are stored as such. Unless the exported model
    multiplies with integers, loading it turns them into floats in the compute dtype.
    A large float32 matrix of an embedding that also projects back is stored transposed
    as well: as a constant of a graph it would be no faster, and TensorFlow keeps about
    ten copies of a constant.

    Args:
        model: a Keras model on TensorFlow, built.
        multiplies_integers: whether matrices of integers remain integers.

    Attributes:
        variables: the stored variables.
        columns: those among them that are transposed matrices, by the id of the matrix.
        dequantized: the matrices of floats that are computed from them at loading.
        bytes: the size of all weights as they are read.
    """

    def __init__(self, model: keras.Model, multiplies_integers: bool = False) -> None:
        stored = {id(weight): weight.value for weight in model.weights}
        for weight, dtype in weights_to_cast(model):
            copy = tf.Variable(tf.cast(weight.value, dtype), trainable=False)
            stored[id(weight)] = copy
        self.columns = {
            id(each.embeddings): tf.Variable(
                columns_of(each.embeddings.value), trainable=False
            )
            for each in nested_layers(model)
            if isinstance(each, ReversibleEmbedding) and multiplies_unarranged(each)
        }
        self.variables = [*stored.values(), *self.columns.values()]
        quantized = [] if multiplies_integers else nested_layers(model)
        self.dequantized = [
            Dequantized(each) for each in quantized if is_plain_int8(each)
        ]
        floats = {id(each.integers): each.values for each in self.dequantized}
        self._read = stored | floats
        sizes = (x.dtype.size * x.shape.num_elements() for x in self._read.values())
        self.bytes = sum(sizes)

    def read(self, weight: Any) -> Any:
        """The stored value of a weight, or a constant, as a tensor."""
        stored = self._read.get(id(weight))
        return shared_tensor(weight) if stored is None else stored.read_value()

    def variable(self, weight: Any) -> Any:
        """The variable that is stored for a weight."""
        return self._read.get(id(weight), weight)

    def transposed(self, weight: Any) -> Any:
        """The variable that is stored for the transpose of a matrix, or `None`."""
        return self.columns.get(id(weight))

    def array(self, weight: Any) -> Any:
        """The stored value of a weight, as an array; of a constant, as a tensor."""
        stored = self._read.get(id(weight))
        return shared_tensor(weight) if stored is None else stored.numpy()


def weights_to_cast(model: keras.layers.Layer) -> Iterator[tuple[keras.Variable, str]]:
    """The weights that layers cast when they read them, with the dtype that they read.

    In a quantized layer, only the bias is cast.
    """
    for layer in nested_layers(model):
        kinds = [names for kind, names in WEIGHTS.items() if isinstance(layer, kind)]
        for name in kinds[0] if kinds else ():
            if layer.quantization_mode is None or name == "bias":
                weight, dtype = getattr(layer, name), layer.compute_dtype
                if isinstance(weight, keras.Variable) and weight.dtype != dtype:
                    yield weight, dtype


def multiplies_unarranged(embedding: ReversibleEmbedding) -> bool:
    """Whether oneDNN multiplies by the matrix of an embedding as it is stored."""
    is_float32 = embedding.compute_dtype == embedding.embeddings.dtype == "float32"
    return is_float32 and np.prod(embedding.embeddings.shape) > MAX_ARRANGED


def columns_of(rows: Tensor) -> Tensor:
    """The transpose `[D, V]` of a matrix `[V, D]`, with padding where it is faster."""
    columns = tf.transpose(rows)
    return padded(columns) if needs_padding(columns, "float32") else columns


class Dequantized(tf.saved_model.experimental.TrackableResource):
    """A matrix of floats that is computed from 8-bit integers at loading.

    It is not freed with the loaded model, because signatures may outlive the model.

    Args:
        layer: a quantized `Dense` or embedding layer, see `is_plain_int8`.

    Attributes:
        integers, scale: the layer's matrix of integers, and for each output the divisor
            that turns them into floats.
        by_row: whether each row has a scale, as in embeddings.
        values: the floats, as functions that are traced here read them.
    """

    def __init__(self, layer: keras.layers.Layer) -> None:
        super().__init__()
        self.dtype = layer.compute_dtype
        self.by_row = not isinstance(layer, Dense)
        name = "embeddings" if self.by_row else "kernel"
        self.integers = getattr(layer, name)
        self.scale = getattr(layer, f"{name}_scale")
        self.values = tf.Variable(self.floats(), trainable=False)
        self.name = f"dequantized_{next(_numbers)}"
        # The base class makes the handle when it is first asked for, and keeps it.
        self.handle = self.resource_handle

    def floats(self) -> Tensor:
        """The floats that the integers stand for, in the same shape."""
        scale = ops.cast(self.scale.value, "float32")
        scale = scale[:, None] if self.by_row else scale
        return ops.cast(ops.cast(self.integers.value, "float32") / scale, self.dtype)

    def _create_resource(self) -> Any:
        if tf.executing_eagerly():
            return self.values.handle
        # A session finds it by this name; loading in Python gives it a new one.
        dtype, shape = self.values.dtype, self.values.shape
        return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=self.name)

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=self.floats())


ATTRIBUTES = (
    *StepModel.__annotations__,
    "source_stride",
    "search_settings",
    "embeddings",
)


def copy_attributes(model: Any, other: Any) -> None:
    """Copies the attributes of a step model, without its methods, to an object."""
    for name in ATTRIBUTES:
        if hasattr(model, name):
            setattr(other, name, getattr(model, name))


class ExportedModel:
    """A step model that computes with stored weights.

    Args:
        model: a Keras model.
        weights: its weights, stored.
        constant: whether decoding steps have weights as constants of the graph. oneDNN
            then arranges them for the processor only once, and the loop does not pass
            them from step to step; with few sentences, passing them takes as long as
            the matrix products. The weights of the decoder make the graph larger.
    """

    def __init__(
        self, model: keras.Model, weights: StoredWeights, constant: bool
    ) -> None:
        copy_attributes(model, self)
        self.model = model
        self.weights = weights
        self.steps: Any = None
        if constant and weights.bytes <= MAX_CONSTANT_BYTES:
            self.steps = self.copy(weights.array)

    def inference_copy(self) -> Any:
        """The copy of the model that a graph computes with, while it is traced."""
        reading = self.copy(self.weights.read)
        if self.steps is None:
            return reading
        # Sources are encoded once for each request, and steps are many.
        steps = {name: getattr(self.steps, name) for name in ("initial_state", "step")}
        return shallow_copy(reading, **steps)

    def copy(self, values: Callable[[Any], Any]) -> Any:
        """A copy of the model that multiplies by the given values of its weights."""
        weights = self.weights
        # A lookup reads few rows; as a constant, all of them would be stored again. And
        # TensorFlow copies a variable that is looked up at each other read.
        return inference_copy(
            self.model,
            values,
            fixed=True,
            rows=weights.variable,
            columns=weights.transposed,
        )
