"""Inputs of layers: options of Keras, a call with its masks, a decoding step.

The methods of a variant take a `Call` or a `Step` instead of many arguments. An input
that a layer cannot honour is refused with a reason, never ignored.
"""

from dataclasses import dataclass
from typing import Any
from typing import NamedTuple

from keras import ops

from keras_attnvariants.utils.typing import Memory
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Options of Keras: the default there, and the reason why a layer that lacks the option
# cannot honour another value.
OPTIONS = {
    "num_heads": (1, "it is one wide layer"),
    "key_dim": (None, "it has no queries and keys; `value_dim` is the width of a head"),
    "value_dim": (None, "it has no values by head"),
    "dropout": (0.0, "it has no learned weights to drop"),
    "seed": (None, "it draws no random numbers"),
    "output_shape": (
        None,
        "its output is as wide as the query, as residual connections need it; a "
        "`Dense` layer after it gives another width",
    ),
    "attention_axes": (None, "its inputs are [batch, length, width]"),
    "sliding_window": (None, "`LocalAttention` has a window"),
    "flash_attention": (None, "it computes its weights itself"),
    "use_gate": (False, "its output has no gate"),
}


def without_keras_options(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """Removes Keras options that a layer lacks, if they have Keras' defaults.

    Args:
        kind: name of the class of the layer.
        options: keyword arguments that the class does not define.

    Raises:
        ValueError: an option has another value than Keras' default.
    """
    for name in OPTIONS.keys() & options.keys():
        default, reason = OPTIONS[name]
        if options[name] != default:
            raise ValueError(
                f"`{name}` must be {default!r} for {kind}: {reason}. "
                f"Received: {name}={options[name]!r}"
            )
    return {name: value for name, value in options.items() if name not in OPTIONS}


class Widths(NamedTuple):
    """The width of each input of a layer."""

    query: int
    key: int
    value: int


class Masks(NamedTuple):
    """The masks of one call; `None` masks nothing.

    Attributes:
        query: bool `[B, T]`, True at real query positions.
        key: bool `[B, S]`, True at real key positions.
        attention: bool `[B, T, S]` or `[T, S]`, an arbitrary pattern.
        causal: whether query `i` attends only to keys `j <= i`.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    attention: Tensor | None = None
    causal: bool = False

    def combined(self, query_length: Size, key_length: Size) -> Tensor | None:
        """A mask of the keys of each query: bool `[1|B, 1|T, S]`, or `None` for all."""
        mask = None if self.key is None else ops.cast(self.key, "bool")[:, None, :]
        if self.attention is not None:
            pattern = ops.cast(self.attention, "bool")
            pattern = pattern if len(pattern.shape) == 3 else pattern[None]
            mask = combine_masks(mask, pattern)
        if self.causal:
            mask = combine_masks(mask, causal_pattern(query_length, key_length)[None])
        return mask

    def applied_to(self, weights: Tensor) -> Tensor:
        """Weights `[..., H, T, S]` as `[1|B, H, T, S]`, 0 for keys that are masked."""
        mask = self.combined(*ops.shape(weights)[-2:])
        return weights if mask is None else ops.where(mask[:, None], weights, 0.0)


@dataclass(frozen=True)
class Call:
    """The inputs of attention over whole sequences.

    Attributes:
        query: `[B, T, width]`.
        value: `[B, S, value width]`.
        key: `[B, S, key width]`; `None` to use `value`.
        masks: the masks, to be honoured or refused.
        return_scores: whether the weights are needed.
        training: whether dropout is applied.
    """

    query: Tensor
    value: Tensor
    key: Tensor | None = None
    masks: Masks = Masks()
    return_scores: bool = False
    training: bool | None = None

    @property
    def keys(self) -> Tensor:
        """The inputs of the key projection."""
        return self.value if self.key is None else self.key

    @property
    def lengths(self) -> tuple[Size, Size]:
        """The lengths `T` and `S`."""
        return ops.shape(self.query)[1], ops.shape(self.value)[1]


@dataclass(frozen=True)
class Step:
    """The inputs of one decoding step.

    Attributes:
        query: `[B, K, width]`, the inputs at this position.
        position: int32 scalar, 0-based.
        state: returned by the previous step or `initial_state`.
        memory: returned by `prepare`, in cross-attention; `None` in self-attention.
        return_scores: whether the weights are needed.
    """

    query: Tensor
    position: Size
    state: State
    memory: Memory = None
    return_scores: bool = False

    @property
    def positions(self) -> Tensor:
        """The position as int32 `[1]`, for the axis that holds the beams."""
        return ops.reshape(ops.convert_to_tensor(self.position, "int32"), (1,))


def causal_pattern(query_length: Size, key_length: Size) -> Tensor:
    """Bool `[T, S]`, True where `j <= i`."""
    return ops.arange(key_length)[None, :] <= ops.arange(query_length)[:, None]


def window_pattern(
    query_positions: Tensor, key_positions: Tensor, first: int, last: int
) -> Tensor:
    """Bool `[T, S]`, True where the key is `first` to `last` positions later.

    Args:
        query_positions: int32 `[T]`.
        key_positions: int32 `[S]`.
        first, last: distances in tokens, negative to the left.
    """
    distance = key_positions[None, :] - query_positions[:, None]
    return ops.logical_and(distance >= first, distance <= last)


def combine_masks(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """The conjunction of two masks, either of which may be `None`."""
    if first is None:
        return second
    if second is None:
        return first
    return ops.logical_and(ops.cast(first, "bool"), ops.cast(second, "bool"))


def zero_masked(x: Tensor, mask: Tensor | None, axis: int = 1) -> Tensor:
    """`x` with 0 where `mask` `[B, L]` is False.

    Args:
        x: `[B, ..., L, ...]`.
        mask: bool, or `None` for no change.
        axis: the axis `L` of `x`.
    """
    if mask is None:
        return x
    before, after = [None] * (axis - 1), [None] * (len(x.shape) - axis - 1)
    mask = ops.cast(mask, "bool")[(slice(None), *before, slice(None), *after)]
    return ops.where(mask, x, ops.zeros((), dtype=x.dtype))


def mask_or_ones(mask: Tensor | None, sequence: Tensor) -> Tensor:
    """The bool mask `[B, S]` of a sequence `[B, S, ...]`; all True if it is `None`."""
    if mask is None:
        return ops.ones(ops.shape(sequence)[:2], "bool")
    return ops.cast(mask, "bool")


def check_inputs(
    layer: Any,
    query: Tensor,
    value: Tensor,
    key: Tensor | None = None,
    mask: Tensor | None = None,
    causal: bool = False,
) -> None:
    """Raises if a layer cannot honour the arguments of a call.

    Query and value of self-attention must not have different static lengths, and the
    rank of an `attention_mask` must be 2 or 3.
    """
    lengths = query.shape[1], value.shape[1]
    if "cross" not in layer.roles and None not in lengths and len(set(lengths)) > 1:
        raise ValueError(
            f"`query` and `value` must have the same length: {type(layer).__name__} is "
            "self-attention. `keras_attnvariants.attention.variants('cross')` lists "
            f"the variants for cross-attention. Received: lengths {lengths}"
        )
    if mask is not None and len(mask.shape) not in (2, 3):
        raise ValueError(
            "`attention_mask` must be [batch, query length, key length], or without "
            "the batch; all heads share it. "
            f"Received: attention_mask with shape {tuple(mask.shape)}"
        )
    given = {
        "key": None if key is value else key,
        "attention_mask": mask,
        "use_causal_mask": causal or None,
    }
    for name, reason in layer.refused.items():
        if given[name] is not None:
            shape = getattr(given[name], "shape", None)
            received = causal if shape is None else f"a tensor of shape {tuple(shape)}"
            raise ValueError(
                f"{type(layer).__name__} cannot honour `{name}`: {reason}. "
                f"Received: {name}={received}"
            )


def check_scores_wanted(layer: Any, wanted: bool) -> None:
    """Raises if weights are requested from a variant that has none."""
    if wanted and not layer.has_scores:
        raise ValueError(
            f"`return_attention_scores` must be False: {type(layer).__name__} has no "
            f"attention weights. Received: return_attention_scores={wanted}"
        )


def check_memory(layer: Any, memory: Memory) -> None:
    """Raises if `memory` is missing in cross-attention."""
    if memory is None and layer.roles == {"cross"}:
        raise ValueError(
            f"`memory` must be the result of `prepare`: {type(layer).__name__} is "
            "cross-attention. Received: None"
        )


def check_returned(layer: Any, method: str, found: Any, given: "Call | Step") -> Any:
    """Returns the result of a layer's method for a call or a step, if it is valid.

    Raises:
        TypeError: it is not a tuple of the right length (a tensor would unpack along
            its batch), or has no weights with four axes where they are requested.
    """
    names = "context, weights" if isinstance(given, Call) else "context, weights, state"
    kind = f"`{method}` of {type(layer).__name__} must return"
    if not isinstance(found, tuple) or len(found) != len(names.split(",")):
        raise TypeError(f"{kind} a tuple ({names}). Received: {type(found).__name__}")
    shape = None if found[1] is None else tuple(found[1].shape)
    if given.return_scores and (shape is None or len(shape) != 4):
        raise TypeError(
            f"{kind} weights with four axes when they are requested. "
            f"Received: shape {shape}"
        )
    return found
