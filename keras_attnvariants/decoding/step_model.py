"""The protocol that models implement for decoding, and operations on their states."""

import copy
from collections.abc import Mapping
from typing import Any
from typing import Protocol
from typing import TypeVar

import keras
from keras import ops

from keras_attnvariants.attention.base import SHARED
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import take
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

Options = TypeVar("Options")


class StepModel(Protocol):
    """A model that predicts a target one position at a time.

    `context` has one row per sentence and is neither tiled nor reordered. `state` is
    nested, and each of its tensors `[B, K, ...]` has one row per hypothesis. At the
    start, all hypotheses of a sentence have equal rows. A tensor that `step` returns
    unchanged (the very same object) is not reordered, nor are those under the key
    `SHARED` of a dict, which belong to a whole sentence.

    Attributes:
        vocabulary_size: number of target tokens, `V`.
        source_vocabulary_size: number of source tokens.
        max_length: longest source or target, in positions.
        pad_id, bos_id, eos_id: ids of the special tokens.

    A model with an attribute `source_stride` reads that many source ids per position.
    An alignment has one weight for each position of the source.
    """

    vocabulary_size: int
    source_vocabulary_size: int
    max_length: int
    pad_id: int
    bos_id: int
    eos_id: int

    def __call__(
        self, inputs: Mapping[str, Tensor], training: bool | None = None
    ) -> Tensor:
        """Logits `[B, T, V]` of whole targets. Only `score` needs it.

        Args:
            inputs: `source_ids`, int `[B, S]`, and `target_ids`, int `[B, T]`, which
                start with BOS.
            training: whether dropout is applied.
        """

    def encode(self, source_ids: Tensor) -> NestedTensors:
        """The context of source ids, int `[B, S]`."""

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: Size
    ) -> NestedTensors:
        """The state of `beams` hypotheses per sentence before the first position.

        On TensorFlow, `max_length` is a tensor unless XLA compiles the search.
        """

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        state: NestedTensors,
        context: NestedTensors,
        return_attention_scores: bool = False,
    ) -> tuple[Any, ...]:
        """Predicts the tokens that follow.

        Args:
            tokens: int `[B, K]`, the tokens at `position`, BOS at first.
            position: int32 scalar, from 0.
            state: returned by the previous step or `initial_state`.
            context: returned by `encode`.
            return_attention_scores: whether to return an alignment as well.

        Returns:
            Logits `[B, K, V]`, the next state and, if `return_attention_scores`,
            an alignment, float32 `[B, K, S]`.
        """


def source_positions(model: StepModel, count: Size) -> Size:
    """The number of positions that a model reads from a number of source ids.

    Args:
        model: a step model.
        count: number of ids, an integer or a tensor of integers.
    """
    stride = getattr(model, "source_stride", 1)
    return count if stride == 1 else (count + stride - 1) // stride


def gather_beams(x: Tensor, index: Tensor) -> Tensor:
    """Rows of `x` `[B, M, ...]` by `index` `[B, J]` into its axis 1: `[B, J, ...]`."""
    return take(x, index, axis=1, batch_axes=1)


def gather_all(tree: NestedTensors, index: Tensor) -> NestedTensors:
    """`gather_beams` for all tensors `[B, M, ...]` of a nested structure."""
    return keras.tree.map_structure(lambda x: gather_beams(x, index), tree)


def collect_alignments(weights: Tensor, beams: Tensor, is_token: Tensor) -> Tensor:
    """The attention from which the tokens of hypotheses were predicted.

    Args:
        weights: float32 `[B, T, K, S]`, of every live beam at every position.
        beams: int32 `[B, N, T]`, the beam that predicted each token.
        is_token: bool `[B, N, T]`, false for padding.

    Returns:
        Float32 `[B, N, T, S]`, 0 for padding.
    """
    batch, steps, width, source_length = ops.shape(weights)
    count = beams.shape[1]
    weights = ops.reshape(weights, (batch, steps * width, source_length))
    index = beams + width * ops.arange(steps, dtype="int32")  # [B, N, T]
    index = ops.reshape(index, (batch, count * steps))
    weights = ops.reshape(
        gather_beams(weights, index), (batch, count, steps, source_length)
    )
    return ops.where(is_token[:, :, :, None], weights, 0.0)


def reorder(new: NestedTensors, old: NestedTensors, parents: Tensor) -> NestedTensors:
    """Reorders a nested state: hypothesis `k` continues from `parents[:, k]`.

    Args:
        new: the state that a step returned, tensors `[B, K, ...]`.
        old: the state before the step. A tensor that is the same object in both is
            equal for all hypotheses of a sentence and is not reordered, nor are the
            tensors under the key `SHARED`.
        parents: int32 `[B, K]`.

    Returns:
        The reordered state, in the structure of `old`.
    """
    reordered: dict[int, Tensor] = {}  # of each object once
    leaves = []
    paths = keras.tree.flatten_with_path(old)
    for x, (path, y) in zip(keras.tree.flatten(new), paths, strict=True):
        if x is not y and SHARED not in path:
            if id(x) not in reordered:
                reordered[id(x)] = gather_beams(x, parents)
            x = reordered[id(x)]
        leaves.append(x)
    return keras.tree.pack_sequence_as(old, leaves)


def with_structure_of(old: NestedTensors, new: NestedTensors) -> NestedTensors:
    """The tensors of `new` in the structure of `old`.

    A model may return a list where it was given a tuple, which a TensorFlow loop
    refuses.
    """
    return keras.tree.pack_sequence_as(old, keras.tree.flatten(new))


def take_rows(tree: NestedTensors, rows: Tensor) -> NestedTensors:
    """The given rows, int32 `[n]`, of all tensors. Single values do not change."""
    return keras.tree.map_structure(
        lambda x: ops.take(x, rows, axis=0) if len(getattr(x, "shape", ())) else x, tree
    )


def select_sentences(options: Options, rows: Tensor) -> Options:
    """Copies an object, with only the rows of some sentences in its tensors.

    Args:
        options: the object; its tensors are `[B, ...]`.
        rows: the sentences, int32 `[n]`.
    """
    part = copy.copy(options)
    for name, value in vars(options).items():
        if ops.is_tensor(value):
            setattr(part, name, take_rows(value, rows))
    return part


def replace_rows(
    tree: NestedTensors, part: NestedTensors, rows: Tensor
) -> NestedTensors:
    """`tree`, in which `part` replaces the rows that `take_rows` took."""
    index = rows[:, None]
    return keras.tree.map_structure(
        lambda x, y: ops.scatter_update(x, index, y), tree, part
    )


def pad_state(state: NestedTensors, larger: NestedTensors) -> NestedTensors:
    """A state padded with zeros to the sizes of another state, except for its rows."""
    return keras.tree.map_structure(pad_tensor, state, with_structure_of(state, larger))


def pad_tensor(x: Tensor, larger: Tensor) -> Tensor:
    """`x` `[B, ...]` padded with zeros to the sizes after the first of `larger`."""
    sizes = zip(ops.shape(x)[1:], ops.shape(larger)[1:], strict=True)
    missing = [new - old for old, new in sizes]
    is_same = all(isinstance(n, int) and n == 0 for n in missing)
    return x if is_same else ops.pad(x, [(0, 0), *[(0, n) for n in missing]])


def for_decoding(model: Any) -> Any:
    """A copy of a step model with its weights in the form in which steps use them.

    Args:
        model: a Keras model; or any step model, which is returned as it is unless it
            has a method `inference_copy`.
    """
    if isinstance(model, keras.layers.Layer):
        return inference_copy(model)
    return model.inference_copy() if hasattr(model, "inference_copy") else model
