"""The base class of recurrences, and functions that several of them use.

Time, or beams instead of time, is the second axis of queries, contexts and states,
`[B, T, H, D]`, and the third of energies and weights, `[B, H, T, S]`, and of masks,
`[B, 1, 1|T, S]`. The same functions therefore compute whole sequences and one step of
`K` hypotheses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.attention.dot_product import DotProductAttention
from keras_attnvariants.attention.multi_head import PerHeadInitializer
from keras_attnvariants.attention.registry import Options
from keras_attnvariants.backend import scan
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
        """A built dense layer without bias, initialized like the input projections.

        Args:
            name: name of the layer.
            input_width, units: widths of its input and output.
            rows_before: if its kernel extends the kernel of an input projection,
                number of rows of that kernel; otherwise 0.
        """
        initializer = PerHeadInitializer(self.kernel_initializer, rows_before)
        return self.dense(f"recurrent_{name}", input_width, units, False, initializer)

    def recurrent_head_dense(
        self,
        name: str,
        equation: str,
        widths: tuple[int, int],
        rows_before: int = 0,
    ) -> keras.layers.EinsumDense:
        """A built layer with one matrix per head and no bias.

        Args:
            name: name of the layer.
            equation: the einsum equation, for an input `[B, T, H, …]` and the kernel
                `[H, …, …]`.
            widths: widths of its input and output.
            rows_before: as for `recurrent_dense`.
        """
        initializer = self.kernel_initializer
        if rows_before:
            initializer = PerHeadInitializer(initializer, rows_before)
        layer = keras.layers.EinsumDense(
            equation,
            output_shape=(None, self.num_heads, widths[1]),
            **self.dense_options(f"recurrent_{name}", initializer),
        )
        layer.build((None, None, self.num_heads, widths[0]))
        return layer


@dataclass(frozen=True)
class Energies:
    """Plain attention to a source before its softmax, the input of a recurrence.

    In a decoding step, the axis `T` holds the hypotheses `K`.

    Attributes:
        q: scaled queries, `[B, T, H, D]`.
        energies: the energies of plain attention, float32 `[B, H, T, S]`.
        mask: bool `[B, 1|H, 1|T, S]`.
        memory: returned by `prepare` of the layer.
        training: whether dropout is applied.
    """

    q: Tensor
    energies: Tensor
    mask: Tensor
    memory: State
    training: bool | None = False


class Recurrence(Options):
    """The rule by which attention depends on the previous target position.

    A recurrence has options but no weights. The attention layer holds the weights that
    it needs, in `layer.recurrent`.

    Class attributes:
        refused: the arguments of a call that cannot be honoured, with reasons.
        keeps: content of the state: `"context"` `[B, K, H, D]`, or `"weights"` or
            `"energies"` of source positions, float32 `[B, K, H, S]`.
    """

    refused: ClassVar[dict[str, str]] = {}
    keeps: ClassVar[str] = "weights"

    def layers(self, layer: RecurrentLayer) -> dict[str, keras.layers.Layer]:
        """The built projections that the recurrence adds to the layer, by name."""
        return {}

    def prepare(self, layer: RecurrentLayer, memory: State) -> State:
        """The memory of a source in addition to keys, values and mask.

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
        lead = batch, beams, layer.num_heads
        if self.keeps == "context":
            return {"context": ops.zeros((*lead, layer.head_dim), layer.compute_dtype)}
        return {self.keeps: ops.zeros((*lead, ops.shape(memory["mask"])[1]))}

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
            state: returned by the previous step or `initial_state`.

        Returns:
            Context `[B, K, H, D]`, float32 weights `[B, H, K, S]`, and the new state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `step`.")


def products(q: Tensor, keys: Tensor) -> Tensor:
    """Float32 products `[B, H, T, S]` of `[B, T, H, D]` and keys `[B, H, S, D]`."""
    q = ops.swapaxes(q, 1, 2)
    return ops.cast(ops.einsum("bhtd,bhsd->bhts", q, keys), "float32")


def average(weights: Tensor, values: Tensor) -> Tensor:
    """Contexts `[B, T, H, D]`: values `[B, H, S, D]`, weighted by `[B, H, T, S]`."""
    return ops.swapaxes(ops.matmul(ops.cast(weights, values.dtype), values), 1, 2)


def scan_time(
    step: Callable[[Any, Any], tuple[Any, Any]],
    like: Tensor,
    inputs: NestedTensors,
    reverse: bool = False,
    axis: int = 1,
) -> NestedTensors:
    """Scans along an axis of the inputs, from a state of zeros; returns the outputs.

    In the inputs and outputs of a step, this axis has one entry, as in decoding. The
    state has one entry there too; its other axes are those of `like`.

    Args:
        step, reverse: as for `keras_attnvariants.backend.scan`.
        like: a tensor of the shape and dtype of all states together.
        inputs: nested tensors.
        axis: the axis of time in `like`, inputs and outputs.
    """

    def slices(x: Tensor) -> Tensor:
        return ops.expand_dims(ops.moveaxis(x, axis, 0), axis + 1)

    def joined(x: Tensor) -> Tensor:
        return ops.moveaxis(ops.squeeze(x, axis + 1), 0, axis)

    shape = list(ops.shape(like))
    shape[axis] = 1
    inputs = keras.tree.map_structure(slices, inputs)
    _, outputs = scan(step, ops.zeros(shape, like.dtype), inputs, reverse)
    return keras.tree.map_structure(joined, outputs)
