"""A group of heads of phrase attention: its keys and values.

The inputs of all projections are n-grams: the concatenated tokens of the layer's
inputs. A projection uses as many of the last tokens as it needs, so that a product
computes a convolution. Keys and values are stored by order and position,
`[B, N, S, H, D]`, and attended to as one list: the positions of the first order, then
those of the second, and so on.
"""

from collections.abc import Callable
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

import keras
from keras import ops

from keras_attnvariants.attention.cache import check_position
from keras_attnvariants.attention.masks import Masks
from keras_attnvariants.attention.multi_head import split_heads
from keras_attnvariants.attention.phrases.ngrams import visible
from keras_attnvariants.attention.phrases.structures import HeadGroup
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# Makes a built dense layer from `(kind, head_dim, input_width)`.
Projection: TypeAlias = Callable[[str, int, int], keras.layers.Dense]


class Widths(NamedTuple):
    """The width of one token of each input."""

    query: int
    key: int
    value: int


class PhraseHeads(keras.layers.Layer):
    """A group of heads with their own projections; subclasses define the scoring.

    Args:
        group: number of heads and their orders.
        query_orders: orders of the query streams.
        widths: widths of the inputs.
        key_dim, value_dim: width of a head's keys (of one token) and values.
        dense: makes a built dense layer from `(name, input_width, units)`.
    """

    def __init__(
        self,
        group: HeadGroup,
        query_orders: tuple[int, ...],
        widths: Widths,
        key_dim: int,
        value_dim: int,
        dense: Callable[[str, int, int], keras.layers.Dense],
        **kwargs: Any,
    ) -> None:
        super().__init__(name=group.name or "heads", **kwargs)
        self.group = group
        self.query_orders = query_orders
        self.widths = widths
        self.key_dim, self.value_dim = key_dim, value_dim

        def projection(
            kind: str, head_dim: int, input_width: int
        ) -> keras.layers.Dense:
            name = f"{group.name}_{kind}" if group.name else kind
            return dense(name, input_width, group.num_heads * head_dim)

        self.make_scoring(projection)
        self.value_denses = [
            projection(f"value_{order}", value_dim, order * widths.value)
            for order in group.orders
        ]
        self.built = True

    # How an n-gram is scored

    def make_scoring(self, projection: Projection) -> None:
        """Makes the projections of queries and keys.

        Args:
            projection: makes a built dense layer from `(kind, head_dim, input_width)`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def queries(self, grams: Tensor) -> NestedTensors:
        """Scaled queries of all streams in turn: nested `[B, M * T, H, …]`.

        Args:
            grams: n-grams of the query, `[B, T, … * width]`.
        """
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def keys(self, grams: Tensor) -> list[Tensor]:
        """Keys, `[..., H, D]` each, for `[..., … * width]`: one per order, or one."""
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def listed_keys(self, keys: Tensor) -> NestedTensors:
        """Keys `[B, N, S, H, D]` in the form that `energies` takes."""
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    def energies(self, queries: NestedTensors, keys: NestedTensors) -> Tensor:
        """`[B, H, M * T, N * S]` from what `queries` and `listed_keys` return."""
        raise NotImplementedError(f"{type(self).__name__} does not score.")

    # Whole sequences

    def project(
        self, dense: keras.layers.Dense, grams: Tensor, order: int, width: int
    ) -> Tensor:
        """The last `order` tokens of n-grams, projected: `[..., H, D]`."""
        projected = dense(grams[..., -order * width :])
        return split_heads(projected, self.group.num_heads)

    def values(self, grams: Tensor) -> list[Tensor]:
        """Values by order, each `[..., H, D]`, for `[..., … * width]`."""
        return [
            self.project(dense, grams, order, self.widths.value)
            for dense, order in zip(self.value_denses, self.group.orders, strict=True)
        ]

    def memory(
        self, key_grams: Tensor, value_grams: Tensor, masks: Masks, query_length: Size
    ) -> State:
        """Keys, values and mask of n-grams `[B, S, … * width]`."""
        keys = ops.stack(self.keys(key_grams), axis=1)
        values = ops.stack(self.values(value_grams), axis=1)
        return self.listed(keys, values, masks, query_length)

    def listed(
        self, keys: Tensor, values: Tensor, masks: Masks, query_length: Size
    ) -> State:
        """The same from keys and values `[B, N, S, H, D]`, as one list of n-grams."""
        length = ops.shape(values)[2]
        parts = [
            visible(masks, order, query_length, length, self.group.with_missing)
            for order in self.group.orders
        ]
        return {
            "keys": self.listed_keys(keys),
            "value": join_orders(values),
            "mask": ops.concatenate(parts, axis=-1),  # [1|B, 1|T, N * S]
        }

    # One position at a time

    def initial_cache(
        self, batch: Size, beams: int, max_length: int, dtype: str
    ) -> State:
        """Empty keys and values, `[B, K, N, max_length, H, D]`."""
        orders, heads = len(self.group.orders), self.group.num_heads
        lead = (batch, beams)
        keys = (*lead, self.key_orders, max_length, heads, self.key_dim)
        values = (*lead, orders, max_length, heads, self.value_dim)
        return {"key": ops.zeros(keys, dtype), "value": ops.zeros(values, dtype)}

    def extend(self, cache: State, grams: Tensor, position: Size) -> State:
        """Returns the cache with n-grams `[B, K, … * width]` that end at `position`."""
        slots = ops.shape(cache["value"])[3]
        check_position(position, slots)
        is_now = ops.equal(ops.arange(slots), position)[:, None, None]

        def write(new: list[Tensor], old: Tensor) -> Tensor:
            return ops.where(is_now, ops.stack(new, axis=2)[:, :, :, None], old)

        return {
            "key": write(self.keys(grams), cache["key"]),
            "value": write(self.values(grams), cache["value"]),
        }

    def cached_memory(self, cache: State, position: Size) -> State:
        """The memory of the positions so far, `[B * K, ...]`, a row per hypothesis."""

        def merge(x: Tensor) -> Tensor:
            batch, beams, *rest = ops.shape(x)
            return ops.reshape(x, (batch * beams, *rest))

        is_filled = ops.arange(ops.shape(cache["value"])[3]) <= position
        masks = Masks(key=is_filled[None])
        return self.listed(merge(cache["key"]), merge(cache["value"]), masks, 1)


def join_orders(x: Tensor) -> Tensor:
    """`[B, N, S, H, D]` to `[B, N * S, H, D]`."""
    batch, orders, length, *head = ops.shape(x)
    return ops.reshape(x, (batch, orders * length, *head))
