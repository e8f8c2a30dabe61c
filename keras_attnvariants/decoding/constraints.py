"""Limits on the tokens that a search may choose."""

from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.backend import at_least
from keras_attnvariants.backend import at_most
from keras_attnvariants.backend import take
from keras_attnvariants.decoding.options import check_lengths
from keras_attnvariants.decoding.options import count_tokens
from keras_attnvariants.decoding.options import is_per_sentence
from keras_attnvariants.decoding.options import is_used
from keras_attnvariants.decoding.options import known_values
from keras_attnvariants.decoding.options import largest
from keras_attnvariants.decoding.options import per_sentence
from keras_attnvariants.decoding.options import to_token_ids
from keras_attnvariants.decoding.options import with_rank
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import source_positions
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Size
from keras_attnvariants.utils.typing import Tensor

# The id of UNK, in every model.
UNKNOWN_ID = 1


class Constraints:
    """The tokens that may come next, per sentence and position.

    PAD and BOS are never allowed. EOS is not allowed before `min_length` tokens, and
    only EOS is allowed at the last position of a sentence. A prefix overrides all other
    constraints except the last position. If every continuation of all hypotheses of a
    sentence would repeat an n-gram, EOS is allowed before `min_length`.

    All options but `prefix` are one value or a tensor with one per sentence, `[B]`.
    The values of tensors are not checked; values of lists and of NumPy arrays are.

    Args:
        model: a step model.
        source_ids: int `[B, S]`, padded on the right.
        min_length: minimum number of tokens before EOS; `None` for the model's value,
            which need not fit `max_length`.
        max_length: number of positions, EOS included. By default, and for sentences
            where it is 0, the source length without padding plus the `extra_length` of
            the model's `search_settings`. At most `model.max_length`.
        prefix: int `[B, P]`, tokens that every hypothesis must start with. Positions
            with PAD are free.
        block_unknown: whether to forbid UNK.
        no_repeat_ngram: size of the n-grams that no hypothesis may repeat; 0 for no
            limit, `None` for the model's value. Values of a tensor may be at most 8.

    Attributes:
        source_ids: int32 `[B, S]`.
        source_width: number of positions that the model reads from `S` ids.
        empty: bool `[B]`, true for sentences without any token.
        max_length: the largest number of positions in the batch; a Python integer
            unless it depends on a width that is unknown before the graph runs.
        pad_id, eos_id: the ids of PAD and EOS.
        limits: int32 `[B]`, the number of positions of each sentence.
        max_forbidden: the largest number of forbidden words at a position that is not
            forced. Words that would repeat an n-gram do not count; see `repeats`.

    Raises:
        ValueError: an argument is out of range or of a wrong shape.
    """

    def __init__(
        self,
        model: StepModel,
        source_ids: Any,
        min_length: Any = None,
        max_length: Any = None,
        prefix: Any = None,
        block_unknown: Any = False,
        no_repeat_ngram: Any = None,
    ) -> None:
        self.source_ids = to_token_ids("source_ids", source_ids)
        ids, settings = self.source_ids, SearchSettings.of(model)
        if no_repeat_ngram is None:
            no_repeat_ngram = settings.no_repeat_ngram
        given = min_length
        if min_length is None:
            # EOS at the last position of a sentence overrides it.
            given, min_length = 0, min(settings.min_length, model.max_length - 1)
        limits = per_sentence("max_length", max_length, "int32", ids)
        self._min_length = per_sentence("min_length", min_length, "int32", ids)
        self._block_unknown = per_sentence("block_unknown", block_unknown, "bool", ids)
        self._ngram_size = per_sentence(
            "no_repeat_ngram", no_repeat_ngram, "int32", ids
        )
        check_lengths(given, max_length, model.max_length)
        for size in known_values(no_repeat_ngram):
            check_integer("no_repeat_ngram", size, minimum=0)
        self.pad_id, self.eos_id = model.pad_id, model.eos_id
        self._bos_id = model.bos_id
        self._longest_ngram = largest(no_repeat_ngram, unknown=LONGEST)
        self.source_width = source_positions(model, ops.shape(self.source_ids)[1])
        source_lengths = count_tokens(self.source_ids, model.pad_id)
        source_lengths = source_positions(model, source_lengths)
        self.empty = ops.equal(source_lengths, 0)
        self._extra_length = settings.extra_length
        self._prefix = padded_prefix(prefix, self.source_ids, model.pad_id)
        self.max_length = self._longest(min_length, max_length, model.max_length)
        self.limits = self._limits(source_lengths, limits)
        self.max_forbidden = 2 + is_used(self._min_length) + is_used(block_unknown)

    def _longest(self, min_length: Any, max_length: Any, model_max_length: int) -> Size:
        """The largest number of positions in the batch."""
        # A prefix of unknown width counts as empty here; EOS then cuts it off.
        prefix_length = (self._prefix.shape[1] or 1) - 1
        least = 1 + max(largest(min_length, model_max_length - 1), prefix_length)
        default = at_least(self.source_width + self._extra_length, least)
        default = at_most(default, model_max_length)
        longest: Size = default
        if max_length is not None:
            longest = largest(max_length, unknown=model_max_length)
            if 0 in known_values(max_length):
                longest = at_least(default, longest)
        if isinstance(longest, int) and longest <= prefix_length:
            raise ValueError(
                f"`prefix` must be shorter than the number of positions ({longest}), "
                f"one of which is for EOS. Received: {prefix_length} columns"
            )
        return longest

    def _limits(self, source_lengths: Tensor, max_length: Any) -> Tensor:
        """The number of positions of each sentence, int32 `[B]`."""
        if max_length is not None and not is_per_sentence(max_length):
            return ops.full_like(source_lengths, self.max_length)
        # The padded width is not used: padding must not change a translation.
        prefix_lengths = count_tokens(self._prefix, self.pad_id)
        limits = ops.maximum(source_lengths + self._extra_length, prefix_lengths + 1)
        limits = ops.maximum(limits, self._min_length + 1)
        if max_length is not None:
            limits = ops.where(ops.greater(max_length, 0), max_length, limits)
        return ops.minimum(limits, self.max_length)

    def forced_tokens(self, position: Tensor) -> Tensor:
        """The only token allowed at a position, or PAD for any: int32 `[B]`."""
        # The prefix has one more column, of PAD, for all positions after it.
        forced = self.pad_id
        if self._prefix.shape[1] != 1:
            column = ops.minimum(position, ops.shape(self._prefix)[1] - 1)
            forced = take(self._prefix, column, axis=1)
        is_last = ops.equal(self.limits, position + 1)
        return ops.where(is_last, self.eos_id, forced)

    def are_allowed(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Whether tokens `[B, K, M]` are allowed where none is forced: a bool mask."""
        allowed = ops.not_equal(tokens, self.pad_id)
        allowed &= ops.not_equal(tokens, self._bos_id)
        if is_used(self._min_length):
            is_late = ops.greater_equal(position, with_rank(self._min_length, 3))
            allowed &= ops.not_equal(tokens, self.eos_id) | is_late
        if is_used(self._block_unknown):
            is_known = ops.not_equal(tokens, UNKNOWN_ID)
            if is_per_sentence(self._block_unknown):
                is_known |= ~with_rank(self._block_unknown, 3)
            allowed &= is_known
        return allowed

    def repeats(
        self, ids: Tensor | None, position: Tensor, vocabulary_size: int
    ) -> Tensor | None:
        """A mask of words that would repeat an n-gram; `None` if that is allowed.

        Args:
            ids: int32 `[B, K, T]`, the hypotheses.
            position: int32 scalar, the number of their tokens.
            vocabulary_size: `V`.

        Returns:
            bool `[B K, V]`.
        """
        if ids is None or not is_used(self._ngram_size):
            return None
        tokens = repeating_tokens(
            ids, position, self._ngram_size, self._longest_ngram, self.pad_id
        )
        tokens = ops.reshape(tokens, (-1, ops.shape(ids)[-1]))
        return which_words(tokens, vocabulary_size)


def padded_prefix(prefix: Any, source_ids: Tensor, pad_id: int) -> Tensor:
    """The prefix with one more column, of PAD: int32 `[B, P + 1]`."""
    # The width is known, even where the width of the sources is not.
    padding = ops.full((ops.shape(source_ids)[0], 1), pad_id, dtype="int32")
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


# The longest n-grams for a tensor of sizes, whose values are not known in a graph.
LONGEST = 8


def repeating_tokens(
    ids: Tensor, position: Tensor, size: Any, longest: int, pad_id: int
) -> Tensor:
    """The tokens that would repeat an n-gram.

    They are the tokens that follow earlier occurrences of the last `n - 1` tokens of
    the hypothesis.

    Args:
        ids: int32 `[B, K, T]`, of which the first `position` are tokens.
        position: int32 scalar.
        size: `n`, an integer or int32 `[B]`; 0 for no limit.
        longest: the largest `n`.
        pad_id: marks places without such a token.

    Returns:
        int32 `[B, K, T]`, with PAD in all other places.
    """
    places = ops.arange(ops.shape(ids)[-1], dtype="int32")
    back = np.arange(1, max(longest, 2), dtype="int32")  # [J]
    index = ops.maximum(places[:, None] - back, 0)
    before = ops.take(ids, index, axis=-1)  # [B, K, T, J]
    last = ops.take(ids, ops.maximum(position - back, 0), axis=-1)  # [B, K, J]
    is_same = ops.equal(before, last[:, :, None])
    is_same |= ops.greater_equal(back, with_rank(size, 4))
    size = with_rank(size, 3)
    is_complete = ops.less(places, position) & ops.greater(places, size - 2)
    is_complete &= ops.greater(size, 0)
    return ops.where(ops.all(is_same, axis=-1) & is_complete, ids, pad_id)


def which_words(tokens: Tensor, vocabulary_size: int) -> Tensor:
    """A mask of the vocabulary for each row: True for words that the row contains.

    Args:
        tokens: int32 `[N, M]`.
        vocabulary_size: `V`.

    Returns:
        bool `[N, V]`.
    """
    rows, count = ops.shape(tokens)
    row = ops.broadcast_to(ops.arange(rows, dtype="int32")[:, None], (rows, count))
    index = ops.reshape(ops.stack([row, tokens], axis=-1), (rows * count, 2))
    none = ops.zeros((rows, vocabulary_size), dtype="bool")
    return ops.scatter_update(none, index, ops.ones((rows * count,), dtype="bool"))
