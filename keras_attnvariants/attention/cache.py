"""The keys and values of the positions decoded so far, for all hypotheses.

All hypotheses of a sentence share one list of keys and values, with one entry for each
position and hypothesis. A mask says which entries belong to the history of each
hypothesis. A search that reorders its hypotheses only reorders this mask; keys and
values stay where they were written.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import write_at
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor


class CacheEntries(NamedTuple):
    """The entries that a decoding step attends to.

    Attributes:
        key, value: `[B, H, slots * K, D]`.
        mask: bool `[B, 1, K, slots * K]`, the entries in each hypothesis's history.
        positions: int32 `[slots * K]`, the position of each entry in the sequence.
    """

    key: Tensor
    value: Tensor
    mask: Tensor
    positions: Tensor


@dataclass(frozen=True)
class KeyValueCache:
    """Reads and writes the state of self-attention, one position at a time.

    A slot holds the entries of all hypotheses at one position.

    Attributes:
        num_heads: number of heads `H`.
        key_dim, value_dim: width of a head's keys and values.
        dtype: dtype of keys and values.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    dtype: str

    def initial(self, batch: Size, beams: int, slots: Size) -> State:
        """An empty cache with room for `slots` positions."""
        entries = slots * beams
        lead = (batch, self.num_heads, entries)
        return {
            "history": ops.zeros((batch, beams, entries), "bool"),
            SHARED: {
                "key": ops.zeros((*lead, self.key_dim), self.dtype),
                "value": ops.zeros((*lead, self.value_dim), self.dtype),
            },
        }

    def slot(self, position: Size, slots: Size) -> Size:
        """The slot of a position.

        Raises:
            ValueError: `position` is a Python integer without a slot.
        """
        check_position(position, slots)
        return position

    def positions(self, position: Size, slots: Size) -> Tensor:
        """The position stored in each slot, int32 `[slots]`."""
        return ops.arange(slots, dtype="int32")

    def write(self, state: State, key: Tensor, value: Tensor, position: Size) -> State:
        """Returns the state with the keys and values `[B, H, K, D]` of a position."""
        beams, slots = sizes(state)
        slot = self.slot(position, slots)
        entries = ops.arange(slots * beams, dtype="int32")
        is_own = ops.equal(entries % beams, np.arange(beams, dtype="int32")[:, None])
        is_written = ops.equal(entries // beams, slot)
        shared = state[SHARED]
        return {
            "history": ops.where(is_written, is_own, state["history"]),
            SHARED: {
                "key": write_at(shared["key"], key, slot * beams, axis=2),
                "value": write_at(shared["value"], value, slot * beams, axis=2),
            },
        }

    def read(self, state: State, position: Size) -> CacheEntries:
        """Returns all entries, after `position` has been written."""
        beams, slots = sizes(state)
        shared = state[SHARED]
        return CacheEntries(
            key=shared["key"],
            value=shared["value"],
            mask=ops.expand_dims(state["history"], 1),
            positions=ops.repeat(self.positions(position, slots), beams),
        )

    def by_slot(self, state: State, weights: Tensor) -> Tensor:
        """Converts weights of entries `[B, H, K, slots * K]` to `[B, H, K, slots]`."""
        beams, slots = sizes(state)
        shape = (*ops.shape(weights)[:3], slots, beams)
        return ops.sum(reshape(weights, shape), axis=-1)


class RingCache(KeyValueCache):
    """A cache of the last `slots` positions; a new one overwrites the oldest."""

    def slot(self, position: Size, slots: Size) -> Size:
        return position % slots

    def positions(self, position: Size, slots: Size) -> Tensor:
        slot = ops.arange(slots, dtype="int32")
        return position - (position - slot) % slots


def sizes(state: State) -> tuple[int, Size]:
    """The numbers of beams and slots of a state."""
    _, beams, entries = ops.shape(state["history"])
    return beams, entries // beams


def check_position(position: Size, slots: Size) -> None:
    """Raises if `position` is known to be outside a cache of `slots` positions."""
    if isinstance(position, int) and isinstance(slots, int) and position >= slots:
        raise ValueError(
            f"`position` must be below {slots}, the `max_length` that the state was "
            f"made for. Received: {position}"
        )
