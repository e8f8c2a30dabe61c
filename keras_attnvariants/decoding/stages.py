"""Searching in two stages: most translations are about as long as their source.

The first stage has room for little more than that, and so less to look back at. What
is not finished by then goes on with all the room and, where a batch may have any
size, without the sentences that are finished.
"""

import copy
from typing import Any
from typing import ClassVar

import keras
from keras import ops

from keras_attnvariants import backend

# How many positions the first stage has beyond the columns of the sources.
MARGIN = 8

# How many positions make a second stage worth its compilation.
LEAST = 16


class StagedSearch:
    """A search over a batch, position by position; subclasses say how.

    Its state is a named tuple of tensors, with `position`, `done` (bool `[B]`) and
    `model_state` among them; all but the position have the batch as their first axis.

    Attributes:
        State: the class of states.
        RESULTS: names of the fields that hold what is found.
        constraints: of this search.
        context: what the model has encoded.
        beams: number of hypotheses of a sentence.
    """

    State: ClassVar[Any]
    RESULTS: ClassVar[tuple[str, ...]]

    def __init__(self, model, constraints, beams: int):
        self.model = model
        self.constraints = constraints
        self.beams = beams
        self.max_length = constraints.max_length
        self.context = model.encode(constraints.source_ids)

    def initial(self, room: int):
        """The state at the start, of a model with room for that many positions."""
        raise NotImplementedError

    def advance(self, state):
        """The state one position further."""
        raise NotImplementedError

    def run(self):
        """The state in the end."""
        source_length = self.constraints.source_ids.shape[1]
        first, *second = stages(source_length, self.max_length)
        state = self.advance_by(first, self.initial(room=first))
        if second:
            state = self.go_on(self.max_length - first, state)
        return state

    def advance_by(self, positions: int, state):
        """Goes on for a number of positions, or until all sentences are done."""
        state = ops.while_loop(
            lambda *state: ops.any(ops.logical_not(self.State(*state).done)),
            lambda *state: tuple(self.advance(self.State(*state))),
            tuple(state),
            maximum_iterations=positions,
        )
        return self.State(*state)

    def go_on(self, positions: int, state):
        """The same with room for all positions, for the sentences not done."""
        rows = unfinished(state.done)
        search = copy.copy(self)
        search.constraints = self.constraints.take(rows)
        search.context = take(self.context, rows)
        parts = take(state._replace(position=())._asdict(), rows)
        part = self.State(**{**parts, "position": state.position})
        larger = self.model.initial_state(search.context, self.beams, self.max_length)
        part = part._replace(model_state=grow(part.model_state, larger))
        part = search.advance_by(positions, part)
        changed = {
            name: put(getattr(state, name), getattr(part, name), rows)
            for name in self.RESULTS
        }
        return state._replace(**changed)


def stages(source_length: int | None, max_length: int) -> tuple[int, ...]:
    """How many positions there is room for, stage by stage.

    Args:
        source_length: number of columns of the sources; `None` if unknown.
        max_length: number of positions in the end.
    """
    if source_length is None or source_length + MARGIN + LEAST > max_length:
        return (max_length,)
    return source_length + MARGIN, max_length


def unfinished(done):
    """Which sentences go on, int32 `[n]`; `None` for all, where shapes are fixed.

    Args:
        done: bool `[B]`.
    """
    if backend.in_xla():
        return None
    return ops.cast(ops.nonzero(ops.logical_not(done))[0], "int32")


def take(tree, rows):
    """Some rows of all tensors in a structure, or all if `rows` is `None`."""
    if rows is None:
        return tree
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), tree)


def put(tree, part, rows):
    """A structure in which the rows that `take` took are replaced; its inverse."""
    if rows is None:
        return part
    index = rows[:, None]
    return keras.tree.map_structure(
        lambda x, y: ops.scatter_update(x, index, y), tree, part
    )


def grow(state, larger):
    """A state with as much room as another one, filled up with zeros."""
    leaves = zip(keras.tree.flatten(state), keras.tree.flatten(larger), strict=True)
    return keras.tree.pack_sequence_as(state, [grow_tensor(*pair) for pair in leaves])


def grow_tensor(x, larger):
    """`x` `[B, ...]` filled up with zeros to the further sizes of another tensor."""
    missing = [
        0 if old == new else new - old
        for old, new in zip(x.shape[1:], larger.shape[1:], strict=True)
    ]
    return ops.pad(x, [(0, 0), *[(0, n) for n in missing]]) if any(missing) else x
