"""The keys and values of the positions decoded so far, for all hypotheses.

All hypotheses of a sentence share one list of keys and values, with one entry for each
position and hypothesis. A mask says which entries belong to the history of each
hypothesis. A search that reorders its hypotheses only reorders this mask; keys and
values stay where they were written.
"""

from dataclasses import dataclass
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.backend import VectorLists
from keras_attnvariants.backend import reshape
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import State
from keras_attnvariants.utils.typing import Tensor

# The key of a mask in a state: which entries are in the history of each hypothesis.
HISTORY = "history"


def with_common_histories(state: NestedTensors) -> NestedTensors:
    """The state of a model, with one history for all caches of the same size.

    All layers write at the same positions, and a search reorders all of them alike, so
    caches of the same size have equal histories. A shared tensor is computed and
    reordered once.
    """
    found: dict[tuple[Size, ...], Tensor] = {}
    leaves = [
        found.setdefault(tuple(x.shape), x) if path[-1] == HISTORY else x
        for path, x in keras.tree.flatten_with_path(state)
    ]
    return keras.tree.pack_sequence_as(state, leaves)


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
        value_heads: number of heads of the values; `None` for `num_heads`.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    dtype: str
    value_heads: int | None = None

    def initial(self, batch: Size, beams: int, slots: Size) -> State:
        """An empty cache with room for `slots` positions."""
        entries = slots * beams
        heads = {"key": self.num_heads, "value": self.value_heads or self.num_heads}
        return {
            HISTORY: ops.zeros((batch, beams, entries), "bool"),
            SHARED: {
                name: vectors.zeros((batch, heads[name]), entries)
                for name, vectors in self.vectors.items()
            },
        }

    @property
    def vectors(self) -> dict[str, VectorLists]:
        """The lists that hold keys and values."""
        return {
            "key": VectorLists(self.key_dim, self.dtype),
            "value": VectorLists(self.value_dim, self.dtype),
        }

    def slot(self, position: Size, slots: Size) -> Size:
        """The slot of a position.

        Raises:
            ValueError: `position` is a Python integer without a slot.
        """
        if isinstance(position, int) and isinstance(slots, int) and position >= slots:
            raise ValueError(
                f"`position` must be below {slots}, the `max_length` that the state "
                f"was made for. Received: {position}"
            )
        return position

    def positions(self, position: Size, slots: Size) -> Tensor:
        """The position stored in each slot, int32 `[slots]`."""
        return ops.arange(slots, dtype="int32")

    def write(self, state: State, key: Tensor, value: Tensor, position: Size) -> State:
        """Returns the state with the keys and values `[B, H, K, D]` of a position."""
        beams, slots = sizes(state)
        slot = self.slot(position, slots)
        new, shared = {"key": key, "value": value}, state[SHARED]
        return {
            HISTORY: self.with_own(state[HISTORY], slot),
            SHARED: {
                name: vectors.write(shared[name], new[name], slot * beams)
                for name, vectors in self.vectors.items()
            },
        }

    def with_own(self, history: Tensor, slot: Size) -> Tensor:
        """The history in which each hypothesis has only its own entry of a slot."""
        _, beams, count = ops.shape(history)
        entries = ops.arange(count, dtype="int32")
        beam = np.arange(beams, dtype="int32")[:, None]
        is_own = ops.equal(entries % beams, beam)
        is_written = ops.equal(entries // beams, slot)
        return ops.where(is_written, is_own, history)

    def read(self, state: State, position: Size) -> CacheEntries:
        """Returns all entries, after `position` has been written."""
        beams, slots = sizes(state)
        found = {
            name: vectors.read(state[SHARED][name], slots * beams)
            for name, vectors in self.vectors.items()
        }
        return CacheEntries(
            **found,
            mask=ops.expand_dims(state[HISTORY], 1),
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
    _, beams, entries = ops.shape(state[HISTORY])
    return beams, entries // beams
