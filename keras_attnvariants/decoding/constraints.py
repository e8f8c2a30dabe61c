"""Which tokens a search may choose."""

import copy
from typing import Any

from keras import ops

from keras_attnvariants.decoding.checks import check_lengths
from keras_attnvariants.decoding.states import take_rows
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.token_ids import count_tokens
from keras_attnvariants.decoding.token_ids import to_token_ids
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.typing import Tensor

# The id of UNK, unless a model has an `unk_id`.
UNKNOWN_ID = 1


class Constraints:
    """The tokens that may come next, per sentence and position.

    PAD and BOS are never allowed. EOS is not allowed before `min_length` tokens, and
    nothing but EOS is at the last position of a sentence. A prefix is stronger than
    `min_length` and `block_unknown`, weaker than the last position.

    Args:
        model: a step model.
        source_ids: int `[B, S]`, padded on the right.
        min_length: smallest number of tokens before EOS.
        max_length: number of positions, EOS included. By default those of the
            source without its padding plus the `extra_length` of the model's
            `search_settings`, at most `model.max_length`.
        prefix: int `[B, P]`, tokens that every hypothesis must start with. Positions
            with PAD are free.
        block_unknown: whether to forbid UNK.

    Attributes:
        source_ids: int32 `[B, S]`.
        empty: bool `[B]`, true for sentences without any token.
        max_length: the largest number of positions in the batch, a Python integer.
        pad_id: the id of PAD.
        limits: int32 `[B]`, the number of positions of each sentence.

    Raises:
        ValueError: an argument is out of range or of a wrong shape.
    """

    def __init__(
        self,
        model: StepModel,
        source_ids: Any,
        min_length: int = 0,
        max_length: int | None = None,
        prefix: Any = None,
        block_unknown: bool = False,
    ) -> None:
        check_lengths(min_length, max_length, model.max_length)
        self.source_ids = to_token_ids("source_ids", source_ids)
        source_lengths = count_tokens(self.source_ids, model.pad_id)
        self.empty = ops.equal(source_lengths, 0)
        self.pad_id = model.pad_id
        self._eos_id = model.eos_id
        self._min_length = min_length
        self._extra_length = SearchSettings.of(model).extra_length
        self._forbidden = {model.pad_id, model.bos_id}
        if block_unknown:
            self._forbidden.add(getattr(model, "unk_id", UNKNOWN_ID))
        self._prefix = padded_prefix(prefix, self.source_ids, model.pad_id)
        self.max_length = self._longest(max_length, model.max_length)
        self.limits = self._limits(source_lengths, follow_source=max_length is None)

    def _longest(self, max_length: int | None, model_max_length: int) -> int:
        """The largest number of positions in the batch."""
        # A prefix of unknown width counts as empty here; EOS then cuts it off.
        prefix_length = (self._prefix.shape[1] or 1) - 1
        least = 1 + max(self._min_length, prefix_length)
        longest = max_length
        if longest is None:
            width = self.source_ids.shape[1]
            width = model_max_length if width is None else width
            longest = min(max(width + self._extra_length, least), model_max_length)
        if longest < least:
            raise ValueError(
                f"`prefix` must be shorter than the number of positions ({longest}), "
                f"one of which is for EOS. Received: {prefix_length} columns"
            )
        return longest

    def _limits(self, source_lengths: Tensor, follow_source: bool) -> Tensor:
        """The number of positions of each sentence, int32 `[B]`."""
        if not follow_source:
            return ops.full_like(source_lengths, self.max_length)
        # Not from the padded width: padding must not change a translation.
        prefix_lengths = count_tokens(self._prefix, self.pad_id)
        limits = ops.maximum(source_lengths + self._extra_length, prefix_lengths + 1)
        limits = ops.maximum(limits, self._min_length + 1)
        return ops.minimum(limits, self.max_length)

    def take(self, rows: Tensor | None) -> "Constraints":
        """The constraints of some sentences, or of all if `rows` is `None`."""
        part = copy.copy(self)
        for name in ("source_ids", "empty", "limits", "_prefix"):
            setattr(part, name, take_rows(getattr(self, name), rows))
        return part

    @property
    def max_forbidden(self) -> int:
        """The largest number of forbidden tokens at a position that is not forced."""
        return len(self._forbidden) + 1

    def forced_tokens(self, position: Tensor) -> Tensor:
        """The only token allowed at a position, or PAD for any: int32 `[B]`."""
        # The prefix has one more column, of PAD, for all positions after it.
        column = ops.minimum(position, ops.shape(self._prefix)[1] - 1)
        forced = ops.take(self._prefix, column, axis=1)
        is_last = ops.equal(self.limits, position + 1)
        return ops.where(is_last, self._eos_id, forced)

    def are_allowed(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Which tokens are allowed where none is forced: bool of the same shape."""
        is_early = ops.less(position, self._min_length)
        forbidden = ops.logical_and(ops.equal(tokens, self._eos_id), is_early)
        for token in sorted(self._forbidden):
            forbidden = ops.logical_or(forbidden, ops.equal(tokens, token))
        return ops.logical_not(forbidden)


def padded_prefix(prefix: Any, source_ids: Tensor, pad_id: int) -> Tensor:
    """The prefix with one more column, of PAD: int32 `[B, P + 1]`."""
    padding = ops.full_like(source_ids[:, :1], pad_id)
    if prefix is None:
        return padding
    prefix = to_token_ids("prefix", prefix)
    rows, sentences = prefix.shape[0], source_ids.shape[0]
    if None not in (rows, sentences) and rows != sentences:
        raise ValueError(
            "`prefix` must have one row per sentence of `source_ids`. Received: "
            f"prefix of shape {tuple(prefix.shape)}, source_ids of shape "
            f"{tuple(source_ids.shape)}"
        )
    return ops.concatenate([prefix, padding], axis=1)
