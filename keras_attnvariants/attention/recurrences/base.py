"""What every recurrence defines, and the parts that several of them use.

Everything here has a time axis, or beams in its place, as the second one: queries
`[B, T, H, D]`, energies and weights `[B, T, H, S]`, masks `[B, 1|T, 1, S]`. The
same functions therefore compute whole sequences and one step of `K` hypotheses.
"""

import math
from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants.backend import Dense
from keras_attnvariants.backend import scan
from keras_attnvariants.utils.typing import DType
from keras_attnvariants.utils.typing import Identifier
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


@dataclass(frozen=True)
class Projections:
    """What a recurrence uses of the attention layer that it serves.

    Attributes:
        num_heads: number of heads `H`.
        key_dim, value_dim: width of a head's keys and values.
        width: width of queries and outputs.
        dtype: the compute dtype.
        dropout: rate at which attention weights are dropped in training.
        key, value: the projections of the source, `[..., width]` to `[..., H * D]`.
        output: the output projection, `[..., H * D]` to `[..., width]`.
        options: arguments of a projection, as `ProjectedAttention.dense_options`
            gives them.
        drop: drops some of given weights in training.
        recurrent: what the recurrence added, by name; see `Recurrence.layers`.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    width: int
    dtype: str
    dropout: float
    key: keras.layers.Dense
    value: keras.layers.Dense
    output: keras.layers.Dense
    options: Callable[..., dict[str, Any]]
    drop: Callable[[Tensor, bool | None], Tensor]
    recurrent: Mapping[str, keras.layers.Layer] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        """What queries are multiplied with, `1 / sqrt(key_dim)`."""
        return self.key_dim**-0.5

    def dense(
        self, name: str, input_width: int, units: int, rows_before: int = 0
    ) -> keras.layers.Dense:
        """A built dense layer without bias, initialised as the input projections.

        Args:
            name: of the layer.
            input_width, units: widths of its input and output.
            rows_before: where its kernel continues that of an input projection, the
                number of rows of the latter.
        """
        options = self.options(f"recurrent_{name}", use_bias=False)
        continue_kernel(options, rows_before)
        layer = Dense(units, use_bias=False, **options)
        layer.build((None, None, input_width))
        return layer

    def head_dense(
        self, name: str, equation: str, sizes: tuple[int, int], rows_before: int = 0
    ) -> keras.layers.EinsumDense:
        """A matrix per head, `[H, *sizes]`, as a layer that computes `equation`.

        Args:
            name: of the layer.
            equation: of an input `[B, T, H, …]` and the kernel `hio`.
            sizes: of the axes `i` and `o`.
            rows_before: as for `dense`.
        """
        inputs, outputs = equation.split(",")[0], equation.split("->")[1]
        lengths = dict(zip("io", sizes, strict=True))
        options = self.options(f"recurrent_{name}", use_bias=False)
        continue_kernel(options, rows_before)
        layer = keras.layers.EinsumDense(
            equation,
            output_shape=(None, self.num_heads, lengths[outputs[-1]]),
            **options,
        )
        layer.build((None, None, self.num_heads, lengths[inputs[-1]]))
        return layer


@dataclass(frozen=True)
class Recurrence:
    """How attention at one target position depends on the one before.

    A recurrence has options and no weights of its own: those that it needs belong to
    the layer, which passes them on as `projections.recurrent`.

    Class attributes:
        honours_patterns: whether an `attention_mask` or `use_causal_mask` can be
            honoured, besides masks of padding.
    """

    honours_patterns: ClassVar[bool] = True

    def layers(self, projections: Projections) -> dict[str, keras.layers.Layer]:
        """The projections that the recurrence adds to the layer's, built, by name."""
        return {}

    def prepare(self, projections: Projections, memory: State) -> State:
        """What the memory of a source needs besides keys and values.

        Args:
            projections: those of the layer.
            memory: `key` and `value` `[B, S, H, D]`, and `mask`, bool `[B, S]`.

        Returns:
            Tensors `[B, ...]` by name.
        """
        return {}

    def initial_state(
        self, projections: Projections, batch: Size, beams: int, memory: State
    ) -> State:
        """The state before the first position, tensors `[B, K, ...]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `initial_state`.")

    def attend(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        training: bool | None,
    ) -> tuple[Tensor, Tensor]:
        """All target positions at once.

        Args:
            projections: those of the layer.
            q: scaled queries, `[B, T, H, D]`.
            energies: float32 `[B, T, H, S]`, those of plain attention.
            mask: bool `[B, 1|T, 1|H, S]`.
            memory: what the layer's `prepare` gives.
            training: whether attention weights are dropped.

        Returns:
            Context `[B, T, H, D]` and float32 weights `[B, T, H, S]`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `attend`.")

    def step(
        self,
        projections: Projections,
        q: Tensor,
        energies: Tensor,
        mask: Tensor,
        memory: State,
        position: Size,
        state: State,
    ) -> tuple[Tensor, Tensor, State]:
        """One target position of `K` hypotheses.

        Args:
            projections, q, energies, mask, memory: as for `attend`, with `K` for `T`.
            position: int32 scalar.
            state: what the previous step, or `initial_state`, returned.

        Returns:
            Context `[B, K, H, D]`, float32 weights `[B, K, H, S]`, and the new state.
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
    """Float32 products `[B, T, H, S]` of queries and keys `[B, S, H, D]`."""
    return ops.cast(ops.einsum("bthd,bshd->bths", q, keys), "float32")


def average(weights: Tensor, values: Tensor) -> Tensor:
    """Contexts `[B, T, H, D]`: values weighted by `[B, T, H, S]`."""
    weights = ops.cast(weights, values.dtype)
    return ops.einsum("bths,bshd->bthd", weights, values)


def scan_time(
    step: Callable[[Any, Any], tuple[Any, Any]],
    state: NestedTensors,
    inputs: NestedTensors,
) -> NestedTensors:
    """The outputs of `scan` along axis 1 of the inputs.

    A step sees inputs `[B, 1, ...]` and a state of one beam, as in decoding.
    """
    inputs = keras.tree.map_structure(
        lambda x: ops.swapaxes(x, 0, 1)[:, :, None], inputs
    )
    _, outputs = scan(step, state, inputs)
    return keras.tree.map_structure(lambda x: ops.swapaxes(x[:, :, 0], 0, 1), outputs)


def continue_kernel(options: dict[str, Any], rows_before: int) -> None:
    """Makes an initializer one that draws the last rows of a larger matrix."""
    if rows_before:
        initializer = options["kernel_initializer"]
        options["kernel_initializer"] = LastRows(initializer, rows_before)


class LastRows(keras.initializers.Initializer):
    """The last rows of one matrix that is drawn whole.

    Args:
        initializer: of the whole matrix, all heads together.
        before: number of rows before the last ones.
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
