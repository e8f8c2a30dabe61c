"""Which tokens a search may choose, and the checks of its arguments."""

import copy
import numbers

import keras
import numpy as np
from keras import ops

from keras_attnvariants.decoding.stages import take

UNKNOWN_ID = 1

# Positions that a translation may have beyond the length of its source.
_EXTRA_LENGTH = 50


class Constraints:
    """The tokens that may come next, per sentence and position.

    PAD and BOS are never allowed. EOS is not allowed before `min_length` tokens, and
    nothing else is at the last position of a sentence. A prefix is stronger than
    `min_length` and `block_unknown`, weaker than the last position.

    Args:
        model: a step model.
        source_ids: int `[B, S]`, padded on the right.
        min_length: number of tokens before EOS, at least.
        max_length: number of positions, EOS included. By default those of the
            source without its padding plus 50, at most `model.max_length`.
        prefix: int `[B, P]`, tokens that every hypothesis has to start with. PAD
            leaves a position free.
        block_unknown: whether to forbid UNK.

    Attributes:
        source_ids: int32 `[B, S]`.
        empty: bool `[B]`, True for sentences without any token.
        max_length: the largest number of positions in the batch, a Python integer.
        pad_id: the id of PAD.
        limits: int32 `[B]`, the number of positions of each sentence.
    """

    def __init__(
        self,
        model,
        source_ids,
        min_length: int = 0,
        max_length: int | None = None,
        prefix=None,
        block_unknown: bool = False,
    ):
        check_lengths(min_length, max_length, model.max_length)
        self.source_ids = as_ids(source_ids, "source_ids")
        source_lengths = count_tokens(self.source_ids, model.pad_id)
        self.empty = ops.equal(source_lengths, 0)
        self._eos_id = model.eos_id
        self.pad_id = model.pad_id
        self._min_length = min_length
        self._blocked = {model.pad_id, model.bos_id}
        if block_unknown:
            self._blocked.add(getattr(model, "unk_id", UNKNOWN_ID))
        self._prefix = _padded_prefix(prefix, self.source_ids, model.pad_id)
        # Known only if the prefix is static; a longer one is cut off by EOS then.
        longest_prefix = (self._prefix.shape[1] or 1) - 1
        least = 1 + max(min_length, longest_prefix)
        self.max_length = max_length
        if max_length is None:
            width = self.source_ids.shape[1]
            width = model.max_length if width is None else width
            self.max_length = max(width + _EXTRA_LENGTH, least)
            self.max_length = min(self.max_length, model.max_length)
        if self.max_length < least:
            raise ValueError(
                "`prefix` has to be shorter than the number of positions "
                f"({self.max_length}), one of which is for EOS. Received: "
                f"{longest_prefix} columns"
            )
        self.limits = self._limits(source_lengths, max_length is None)

    def _limits(self, source_lengths, follow_source: bool):
        if not follow_source:
            return ops.full_like(source_lengths, self.max_length)
        # Not from the padded width: padding must not change a translation.
        prefix_lengths = count_tokens(self._prefix, self.pad_id)
        limits = ops.maximum(source_lengths + _EXTRA_LENGTH, prefix_lengths + 1)
        limits = ops.maximum(limits, self._min_length + 1)
        return ops.minimum(limits, self.max_length)

    def take(self, rows) -> "Constraints":
        """The constraints of some sentences, or of all if `rows` is `None`."""
        part = copy.copy(self)
        for name in ("source_ids", "empty", "limits", "_prefix"):
            setattr(part, name, take(getattr(self, name), rows))
        return part

    @property
    def most_blocked(self) -> int:
        """How many tokens are forbidden, at most, where none is forced."""
        return len(self._blocked) + 1

    def forced(self, position):
        """The only token allowed at a position, or PAD for any: int32 `[B]`."""
        # The prefix has one column of PAD too many, for all positions after it.
        column = ops.minimum(position, ops.shape(self._prefix)[1] - 1)
        forced = ops.take(self._prefix, column, axis=1)
        is_last = ops.equal(self.limits, position + 1)
        return ops.where(is_last, self._eos_id, forced)

    def are_allowed(self, tokens, position):
        """Which tokens are allowed where none is forced: bool of the same shape."""
        is_early = ops.less(position, self._min_length)
        blocked = ops.logical_and(ops.equal(tokens, self._eos_id), is_early)
        for token in sorted(self._blocked):
            blocked = ops.logical_or(blocked, ops.equal(tokens, token))
        return ops.logical_not(blocked)


def _padded_prefix(prefix, source_ids, pad_id: int):
    """The prefix with one more column of PAD, int32 `[B, P + 1]`."""
    nothing = ops.full_like(source_ids[:, :1], pad_id)
    if prefix is None:
        return nothing
    prefix = as_ids(prefix, "prefix")
    rows, sentences = prefix.shape[0], source_ids.shape[0]
    if None not in (rows, sentences) and rows != sentences:
        raise ValueError(
            "`prefix` has to have one row per sentence of `source_ids`. Received: "
            f"prefix of shape {tuple(prefix.shape)}, source_ids of shape "
            f"{tuple(source_ids.shape)}"
        )
    return ops.concatenate([prefix, nothing], axis=1)


def count_tokens(ids, pad_id: int):
    """The number of ids along the last axis that are not padding, int32."""
    return ops.sum(ops.cast(ops.not_equal(ids, pad_id), "int32"), axis=-1)


def as_ids(x, name: str):
    """Converts `x` to int32 token ids `[B, length]`, or says why it is none."""
    x = ops.convert_to_tensor(x)
    is_integer = "int" in keras.backend.standardize_dtype(x.dtype)
    if len(x.shape) != 2 or not is_integer:
        raise ValueError(
            f"`{name}` has to be a tensor of integers [batch, length]. Received: "
            f"shape {tuple(x.shape)}, dtype {x.dtype}"
        )
    return ops.cast(x, "int32")


def check_lengths(min_length, max_length, model_max_length: int):
    """Raises `ValueError` unless the lengths make sense together."""
    check_integer("min_length", min_length, 0)
    if max_length is not None:
        check_integer("max_length", max_length, 1)
    longest = model_max_length if max_length is None else max_length
    if longest > model_max_length:
        raise ValueError(
            f"`max_length` exceeds that of the model ({model_max_length}). "
            f"Received: {max_length}"
        )
    if min_length >= longest:
        raise ValueError(
            f"`min_length` does not count EOS, so it has to be below {longest}. "
            f"Received: {min_length}"
        )


def check_search(beam_size, length_penalty, n_best):
    """Raises `ValueError` unless these describe a beam search."""
    check_integer("beam_size", beam_size, 1)
    check_integer("n_best", n_best, 1)
    if n_best > beam_size:
        raise ValueError(
            f"`n_best` has to be at most `beam_size` ({beam_size}). Received: {n_best}"
        )
    if not isinstance(length_penalty, numbers.Real) or not np.isfinite(length_penalty):
        raise ValueError(
            "`length_penalty` has to be a finite number, the exponent of the length "
            f"normalisation. Received: {length_penalty!r}"
        )


def check_integer(name: str, value, least: int):
    """Raises `ValueError` unless `value` is an integer of at least `least`."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise ValueError(
            f"`{name}` has to be an integer >= {least}. Received: {value!r}"
        )
