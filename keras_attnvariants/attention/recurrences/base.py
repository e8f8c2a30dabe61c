"""What every recurrence defines, and the parts that several of them use.

Everything here has a time axis, or beams in its place, as the second one: queries
`[B, T, H, D]`, energies and weights `[B, T, H, S]`, masks `[B, 1|T, 1, S]`. Whole
sequences are thus computed by the same functions as one step of `K` hypotheses.
"""

import dataclasses
import math
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.base import clone_initializer
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import scan


@dataclasses.dataclass(frozen=True)
class Recurrence:
    """How attention at one target position depends on the one before.

    What a rule learns belongs to the layer that it serves, as `layer.recurrent`.
    """

    def layers(self, layer, width: int) -> dict[str, keras.layers.Layer]:
        """What the rule adds to a layer's projections, built, by role.

        Args:
            layer: the `RecurrentCrossAttention`; its own projections are built.
            width: width of queries and outputs.
        """
        return {}

    def prepare(self, layer, memory: dict[str, Any]) -> dict[str, Any]:
        """Tensors `[B, ...]` to remember of a source besides those of `memory`.

        Args:
            layer: the layer.
            memory: `key` and `value` `[B, S, H, D]`, and `mask`, bool `[B, S]`.
        """
        return {}

    def initial_state(self, layer, batch, beams: int, memory) -> dict[str, Any]:
        """The state before the first position, tensors `[B, K, ...]`."""
        raise NotImplementedError

    def attend(self, layer, q, memory, masks, training):
        """All target positions at once.

        Args:
            layer: the layer.
            q: scaled queries, `[B, T, H, D]`.
            memory: what is known of the source, as from the layer's `prepare`.
            masks: `Masks` of the call, that of the keys always given.
            training: whether attention weights are dropped.

        Returns:
            Context `[B, T, H, D]` and float32 weights `[B, T, H, S]`.
        """
        raise NotImplementedError

    def step(self, layer, q, position, state, memory):
        """One target position of `K` hypotheses.

        Returns:
            Context `[B, K, H, D]`, float32 weights `[B, K, H, S]`, and the new state.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Recurrence":
        return cls(**config)


def energies(q, memory):
    """Float32 energies `[B, T, H, S]` of scaled queries with all keys."""
    return ops.cast(ops.einsum("bthd,bshd->bths", q, memory["key"]), "float32")


def mix(weights, values):
    """Contexts `[B, T, H, D]` of weights `[B, T, H, S]`."""
    weights = ops.cast(weights, values.dtype)
    return ops.einsum("bths,bshd->bthd", weights, values)


def source_mask(memory):
    """Which source positions are real, `[B, 1, 1, S]`."""
    return memory["mask"][:, None, None]


def scan_time(step, state, inputs):
    """The outputs of `scan` along axis 1 of the inputs, in the role of one beam.

    A step sees inputs `[B, 1, ...]` and a state of one beam, as in decoding.
    """
    inputs = keras.tree.map_structure(
        lambda x: ops.swapaxes(x, 0, 1)[:, :, None], inputs
    )
    _, outputs = scan(step, state, inputs)
    return keras.tree.map_structure(lambda x: ops.swapaxes(x[:, :, 0], 0, 1), outputs)


class LastRows(keras.initializers.Initializer):
    """The last rows of one matrix, drawn whole: what a projection has in addition.

    Args:
        initializer: of the whole matrix, all heads together.
        before: number of rows before the last ones.
    """

    def __init__(self, initializer: keras.initializers.Initializer, before: int):
        self.initializer = initializer
        self.before = before

    def __call__(self, shape, dtype=None):
        """`[rows, units]`, or by head, `[H, rows, units]`."""
        *heads, rows, units = shape
        whole = (self.before + rows, math.prod(heads) * units)
        last = self.initializer(whole, dtype=dtype)[self.before :]
        return ops.moveaxis(ops.reshape(last, (rows, *heads, units)), 0, -2)

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.initializer)
        return {"initializer": initializer, "before": self.before}


def flat_projection(layer, name: str, input_width: int, units: int, before: int = 0):
    """A dense layer without bias, initialised as the layer's input projections.

    With `before`, it continues one of these, which has so many rows.
    """
    dense = Dense(
        units, use_bias=False, **projection_options(layer, f"recurrent_{name}", before)
    )
    dense.build((None, None, input_width))
    return dense


def head_projection(
    layer, name: str, equation: str, sizes: tuple[int, int], before: int = 0
):
    """A matrix per head, `[H, *sizes]`, as a layer that computes `equation`.

    Args:
        layer: the layer.
        name: of the weight.
        equation: of an input `[B, T, H, …]` and the kernel `hio`.
        sizes: of the axes `i` and `o`.
        before: as for `flat_projection`.
    """
    inputs, outputs = equation.split(",")[0], equation.split("->")[1]
    lengths = dict(zip("io", sizes, strict=True))
    heads = layer.num_heads
    dense = keras.layers.EinsumDense(
        equation,
        output_shape=(None, heads, lengths[outputs[-1]]),
        **projection_options(layer, f"recurrent_{name}", before),
    )
    dense.build((None, None, heads, lengths[inputs[-1]]))
    return dense


def projection_options(layer, name: str, before: int) -> dict[str, Any]:
    """Initialiser, dtype and name of a projection that the rule adds."""
    initializer = clone_initializer(layer.kernel_initializer)
    return {
        "kernel_initializer": LastRows(initializer, before) if before else initializer,
        "dtype": layer.dtype_policy,
        "name": name,
    }
