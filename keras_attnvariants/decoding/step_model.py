"""What decoding asks of a model."""

from collections.abc import Mapping
from typing import Any
from typing import Protocol

from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor


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
        max_length: longest source or target, in tokens.
        pad_id, bos_id, eos_id: ids of the special tokens.
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
        self, context: NestedTensors, beams: int, max_length: int
    ) -> NestedTensors:
        """The state of `beams` hypotheses per sentence before the first position."""

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
            state: what the previous step, or `initial_state`, returned.
            context: what `encode` returned.
            return_attention_scores: whether to return an alignment as well.

        Returns:
            Logits `[B, K, V]`, the next state and, if `return_attention_scores`,
            an alignment, float32 `[B, K, S]`.
        """
