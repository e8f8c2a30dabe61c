"""What decoding asks of a model, and how it handles the model's state."""

from typing import Any
from typing import Protocol

import keras
from keras import ops

from keras_attnvariants.attention.base import SHARED


class StepModel(Protocol):
    """A model that predicts a target one position at a time.

    `context` has one row per sentence and is neither tiled nor reordered. `state` is
    nested, every leaf `[B, K, ...]` has one row per hypothesis. At the start all
    hypotheses of a sentence are equal, and so are their rows. A leaf that `step`
    hands back untouched (the very same tensor) stays so and is not reordered; nor is
    what stands under the key `SHARED` of a dict, which belongs to a whole sentence.
    """

    vocabulary_size: int
    source_vocabulary_size: int
    max_length: int
    pad_id: int
    bos_id: int
    eos_id: int

    def encode(self, source_ids) -> Any:
        """Computes the context of source ids `[B, S]`."""

    def initial_state(self, context, beams: int, max_length: int) -> Any:
        """Allocates the state of `beams` hypotheses per sentence."""

    def step(self, tokens, position, state, context, return_attention_scores=False):
        """Predicts from the previous tokens `[B, K]` what follows at `position`.

        Returns:
            Logits `[B, K, V]`, the next state and, if `return_attention_scores`,
            an alignment, float32 `[B, K, S]`.
        """


def gather_beams(x, index):
    """Rows of `x` `[B, M, ...]` by `index` `[B, J]` into its axis 1: `[B, J, ...]`."""
    batch, beams, *inner = ops.shape(x)
    rows = index + beams * ops.arange(batch, dtype="int32")[:, None]
    return ops.take(ops.reshape(x, (batch * beams, *inner)), rows, axis=0)


def reorder(new, old, parents):
    """Lets hypothesis `k` continue from `parents[:, k]`, for a nested state.

    Args:
        new: the state that a step returned, leaves `[B, K, ...]`.
        old: the state that went into that step. Leaves that are the same tensor in
            both are equal for all hypotheses of a sentence and remain as they are.
        parents: int32 `[B, K]`.

    Returns:
        The reordered state, in the structure of `old`.
    """
    paths = keras.tree.flatten_with_path(old)
    leaves = [
        x if x is y or SHARED in path else gather_beams(x, parents)
        for x, (path, y) in zip(keras.tree.flatten(new), paths, strict=True)
    ]
    return keras.tree.pack_sequence_as(old, leaves)


def same_structure(new, old):
    """The leaves of `new` in the structure of `old`, as a loop needs them.

    A model may return a list where it got a tuple; a TensorFlow loop minds that.
    """
    return keras.tree.pack_sequence_as(old, keras.tree.flatten(new))
