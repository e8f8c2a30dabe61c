"""Decoding steps that read their weights as constants of the graph."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_attnvariants.backend import cast_matrices
from keras_attnvariants.backend import constant_weights
from keras_attnvariants.backend import ends_of_columns
from keras_attnvariants.backend import joint_kernels
from keras_attnvariants.backend import use_column_ends
from keras_attnvariants.backend import use_joint_kernels
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor

# Of the weights in a graph, which may have 2 GB.
MAX_CONSTANT_BYTES = 1_500_000_000


class PackedSteps:
    """A step model that multiplies with constants, which oneDNN packs once.

    With few sentences, bringing matrices into the order that oneDNN needs takes as long
    as multiplying with them. A loop also hands variables on from step to step, which a
    constant spares it. Sources are encoded with the variables of the model, once for
    each request.

    Args:
        model: a step model.
        weights: its variables, and arrays in the dtype in which they are used.

    Raises:
        ValueError: the arrays are too large for a graph.
    """

    def __init__(
        self, model: keras.Model, weights: Sequence[tuple[keras.Variable, np.ndarray]]
    ) -> None:
        size = sum(array.nbytes for _, array in weights)
        if size > MAX_CONSTANT_BYTES:
            raise ValueError(
                "`packed` and `onednn` need weights of at most "
                f"{MAX_CONSTANT_BYTES / 1e9:.1f} GB, because a graph cannot hold more. "
                f"Received: {size / 1e9:.1f} GB"
            )
        self.model = model
        self.weights_as_arrays = weights
        with constant_weights(weights):
            ends, kernels = ends_of_columns(model), joint_kernels(model)
        self.column_ends = {scale: np.array(part) for scale, part in ends.items()}
        self.joint_kernels = {
            layers: [np.array(part) for part in parts]
            for layers, parts in kernels.items()
        }

    def __getattr__(self, name: str) -> Any:
        """The special tokens, the sizes and the settings of the model."""
        return getattr(self.model, name)

    def encode(self, source_ids: Tensor) -> NestedTensors:
        """As of the model."""
        with cast_matrices(self.model):
            return self.model.encode(source_ids)

    def step(self, *args: Any, **options: Any) -> tuple[Any, ...]:
        """As of the model, with constants in the place of its variables."""
        with (
            constant_weights(self.weights_as_arrays),
            use_column_ends(self.column_ends),
            use_joint_kernels(self.joint_kernels),
        ):
            outputs: tuple[Any, ...] = self.model.step(*args, **options)
        return outputs
