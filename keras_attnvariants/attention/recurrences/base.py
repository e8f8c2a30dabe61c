"""The base class of recurrences, and functions that several of them use.

Time, or beams instead of time, is the second axis of queries, contexts and states,
`[B, T, H, D]`, and the third of energies and weights, `[B, H, T, S]`, and of masks,
`[B, 1, 1|T, S]`. The same functions therefore compute whole sequences and one step of
`K` hypotheses.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from dataclasses import dataclass
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import scan
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Identifier
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


class RecurrentLayer(DotProductAttention):
    """Learned attention that recurrences may add projections to.

    Attributes:
        width: width of queries and outputs.
        recurrent: projections that the recurrence added, by name; see
            `Recurrence.layers`.
    """

    width: int
    recurrent: dict[str, keras.layers.Layer]

    def recurrent_dense(
        self, name: str, input_width: int, units: int, rows_before: int = 0
    ) -> keras.layers.Dense:
        """A built dense layer without bias, initialised like the input projections.

        Args:
            name: name of the layer.
            input_width, units: widths of its input and output.
            rows_before: if its kernel extends the kernel of an input projection,
                number of rows of that kernel; otherwise 0.
        """
        options = self.dense_options(f"recurrent_{name}", use_bias=False)
        continue_kernel(options, rows_before)
        layer = Dense(units, use_bias=False, **options)
        layer.build((None, None, input_width))
        return layer

    def recurrent_head_dense(
        self, name: str, equation: str, sizes: tuple[int, int], rows_before: int = 0
    ) -> keras.layers.EinsumDense:
        """A built layer with one matrix per head, `[H, *sizes]`, and no bias.

        Args:
            name: name of the layer.
            equation: the einsum equation, for an input `[B, T, H, …]` and the kernel
                `hio`.
            sizes: sizes of the axes `i` and `o`.
            rows_before: as for `recurrent_dense`.
        """
        inputs, outputs = equation.split(",")[0], equation.split("->")[1]
        lengths = dict(zip("io", sizes, strict=True))
        options = self.dense_options(f"recurrent_{name}", use_bias=False)
        continue_kernel(options, rows_before)
        layer = keras.layers.EinsumDense(
            equation,
            output_shape=(None, self.num_heads, lengths[outputs[-1]]),
            **options,
        )
        layer.build((None, None, self.num_heads, lengths[inputs[-1]]))
        return layer


@dataclass(frozen=True)
class Energies:
    """Plain attention to a source, up to its softmax: what a recurrence starts from.

    In a decoding step, the axis `T` holds the hypotheses `K`.

    Attributes:
        q: scaled queries, `[B, T, H, D]`.
        energies: the energies of plain attention, float32 `[B, H, T, S]`.
        mask: bool `[B, 1|H, 1|T, S]`.
        memory: what `prepare` of the layer returns.
        training: whether dropout is applied.
    """

    q: Tensor
    energies: Tensor
    mask: Tensor
    memory: State
    training: bool | None = False


@dataclass(frozen=True)
class Recurrence:
    """How attention at one target position depends on the previous position.

    A recurrence has options but no weights. The weights that it needs belong to the
    attention layer, in `layer.recurrent`.

    Class attributes:
        honours_patterns: whether the recurrence honours `attention_mask` and
            `use_causal_mask`, in addition to padding masks.
    """

    honours_patterns: ClassVar[bool] = True

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        """The built projections that the recurrence adds to the layer, by name."""
        return {}

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        """What the memory of a source needs in addition to keys, values and mask.

        Args:
            layer: the attention layer.
            memory: `key` and `value` `[B, H, S, D]`, and `mask`, bool `[B, S]`.

        Returns:
            Tensors `[B, ...]` by name.
        """
        return {}

    def initial_state(
        self, layer: RecurrentLayer, batch: Size, beams: int, memory: State
    ) -> State:
        """The state before the first position, tensors `[B, K, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `initial_state`.")

    def attend(self, layer: RecurrentLayer, plain: Energies) -> tuple[Tensor, Tensor]:
        """Computes all target positions at once.

        Returns:
            Context `[B, T, H, D]` and float32 weights `[B, H, T, S]`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `attend`.")

    def step(
        self, layer: RecurrentLayer, plain: Energies, position: Size, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Computes one target position of `K` hypotheses.

        Args:
            layer, plain: as for `attend`.
            position: int32 scalar.
            state: what the previous step, or `initial_state`, returned.

        Returns:
            Context `[B, K, H, D]`, float32 weights `[B, H, K, S]`, and the new state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `step`.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Recurrence":
        """The inverse of `get_config`."""
        return cls(**config)


def products(q: Tensor, keys: Tensor) -> Tensor:
    """Float32 products `[B, H, T, S]` of `[B, T, H, D]` and keys `[B, H, S, D]`."""
    q = ops.swapaxes(q, 1, 2)
    return ops.cast(ops.einsum("bhtd,bhsd->bhts", q, keys), "float32")


def average(weights: Tensor, values: Tensor) -> Tensor:
    """Contexts `[B, T, H, D]`: values `[B, H, S, D]`, weighted by `[B, H, T, S]`."""
    return ops.swapaxes(ops.matmul(ops.cast(weights, values.dtype), values), 1, 2)


def scan_time(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: NestedTensors,
    inputs: NestedTensors,
    reverse: bool = False,
    axis: int = 1,
    unroll: int = 1,
) -> NestedTensors:
    """Scans along an axis of the inputs and returns the outputs.

    A step gets inputs, and gives outputs, in which this axis has one entry, as in
    decoding. For `reverse` and `unroll` see `keras_attnvariants.backend.scan`.
    """

    def slices(x: Tensor) -> Tensor:
        return ops.expand_dims(ops.moveaxis(x, axis, 0), axis + 1)

    def joined(x: Tensor) -> Tensor:
        return ops.moveaxis(ops.squeeze(x, axis + 1), 0, axis)

    inputs = keras.tree.map_structure(slices, inputs)
    _, outputs = scan(step, state, inputs, reverse, unroll)
    return keras.tree.map_structure(joined, outputs)


def first_state(weights: Tensor) -> Tensor:
    """Zeros `[B, H, 1, S]` for weights `[B, H, T, S]`."""
    batch, heads, _, length = ops.shape(weights)
    return ops.zeros((batch, heads, 1, length))


def continue_kernel(options: dict[str, Any], rows_before: int) -> None:
    """Makes the kernel initializer return the last rows of a larger matrix."""
    if rows_before:
        initializer = options["kernel_initializer"]
        options["kernel_initializer"] = LastRows(initializer, rows_before)


class LastRows(keras.initializers.Initializer):
    """Initialises a whole matrix and returns its last rows.

    Args:
        initializer: initializer of the whole matrix, for all heads together.
        before: number of rows that precede the returned ones.
    """

    def __init__(self, initializer: Identifier, before: int) -> None:
        self.initializer = keras.initializers.get(initializer)
        self.before = before

    def __call__(self, shape: tuple[int, ...], dtype: DType = None) -> Tensor:
        """`[rows, units]`, or by head, `[H, rows, units]`."""
        *heads, rows, units = shape
        whole = (self.before + rows, math.prod(heads) * units)
        last = self.initializer(whole, dtype=dtype)[self.before :]
        return ops.moveaxis(ops.reshape(last, (rows, *heads, units)), 0, -2)

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.initializer)
        return {"initializer": initializer, "before": self.before}
