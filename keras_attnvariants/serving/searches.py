"""The search of an exported model: options, and one graph for sources of any width."""

from dataclasses import dataclass
from typing import Any
from typing import Self
from typing import TypedDict
from typing import Unpack

import keras
import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.serving.shortlisted import ShortlistedSteps
from keras_attnvariants.serving.translator import Status
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.typing import Tensor

# Beyond the narrowest, each is wider than the one before by half at most: a request
# costs little more than its longest source needs.
_BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128, 192)

# Tokens of a source or target, unless the model accepts less.
_MAX_TOKENS = 256


class ExportOptions(TypedDict, total=False):
    """Options of `export`; each can be left out.

    Attributes:
        beam_size, length_penalty: of the beam search; by default those of the model's
            `search_settings`.
        n_best: translations that `nbest` returns; by default `beam_size`.
        max_batch: sentences in a request, at most; by default 64.
        max_characters: characters of a text that are read; by default 4096.
        max_tokens: tokens of a source or target that are read; by default 256, or
            what the model accepts if that is less.
        shortlist_width: number of tokens that each sentence has of a shortlist; by
            default one in 16 tokens of the vocabulary, but at least 500.
    """

    beam_size: int | None
    length_penalty: float | None
    n_best: int | None
    max_batch: int
    max_characters: int
    max_tokens: int | None
    shortlist_width: int | None


@dataclass(frozen=True)
class Options:
    """How an exported model searches, and what a request may hold at most.

    Attributes:
        beam_size, length_penalty: of the beam search.
        n_best: translations that the signature `nbest` returns.
        max_batch: sentences in a request; more are refused.
        max_characters: characters of a text; the rest is cut off.
        max_tokens: tokens of a source or target; the rest is cut off.
        shortlist_width: tokens that the translations of a sentence may have, if there
            is a shortlist.
    """

    beam_size: int
    length_penalty: float
    n_best: int
    max_batch: int = 64
    max_characters: int = 4096
    max_tokens: int = _MAX_TOKENS
    shortlist_width: int | None = None

    @classmethod
    def of(
        cls, model: Any, has_shortlist: bool = False, **given: Unpack[ExportOptions]
    ) -> Self:
        """The options that are given, and those of a model in the place of the others.

        Args:
            model: any step model.
            has_shortlist: whether there is a shortlist, which has a width.
            **given: options; `None` is as if they were left out.

        Raises:
            ValueError: one is out of range, or excludes another.
        """
        values: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        if "shortlist_width" in values and not has_shortlist:
            raise ValueError(
                "`shortlist_width` needs `shortlist`. Received: "
                f"{values['shortlist_width']} without one"
            )
        if has_shortlist:
            values.setdefault("shortlist_width", max(500, model.vocabulary_size // 16))
        names = values.keys() & {"beam_size", "length_penalty"}
        search = SearchSettings.of(model, **{name: values.pop(name) for name in names})
        values.setdefault("n_best", search.beam_size)
        values.setdefault("max_tokens", min(_MAX_TOKENS, model.max_length))
        options = cls(search.beam_size, search.length_penalty, **values)
        for name in ("n_best", "max_batch", "max_characters", "max_tokens"):
            check_integer(name, getattr(options, name))
        check_optional_integer("shortlist_width", options.shortlist_width)
        if options.max_tokens > model.max_length:
            raise ValueError(
                f"`max_tokens` must be at most that of the model ({model.max_length}). "
                f"Received: {options.max_tokens}"
            )
        return options

    @property
    def buckets(self) -> tuple[int, ...]:
        """Source widths in ascending order, the last of them `max_tokens`."""
        widths = list(_BUCKETS)
        while widths[-1] < self.max_tokens:
            widths.append(2 * widths[-2])
        return (*(w for w in widths if w < self.max_tokens), self.max_tokens)


class BucketedSearch:
    """Searches in the narrowest bucket that holds all sources of a request.

    A bucket is a width to which sources are padded. The graph is the same for all of
    them, but TensorFlow prepares its products for every new shape.

    Args:
        model: a step model.
        options: of the search, with the widths of the buckets.
        n_best: translations of each sentence.
        of_tokens: whether to return, for each token of a translation, attention over
            the source and its log probability.
    """

    def __init__(
        self,
        model: keras.Model,
        options: Options,
        n_best: int = 1,
        of_tokens: bool = False,
    ) -> None:
        self.model = model
        self.options = options
        self.n_best = n_best
        self.of_tokens = of_tokens
        # One function, which all signatures share.
        inputs = [
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([], tf.int32),
        ]
        self.shared = tf.function(self.search, inputs, autograph=False)

    def __call__(
        self, ids: Tensor, lengths: Tensor, count: int | None = None
    ) -> Hypotheses:
        """The translations of ids, cut to the longest of them.

        Args:
            ids: int32 `[B, S]`; what is beyond the lengths may be anything.
            lengths: int32 `[B]`, at most the width of the widest bucket.
            count: translations of each sentence, from 1 to `n_best`, the default.
                Fewer are found sooner.
        """
        count = self.n_best if count is None else count
        found = Hypotheses(*self.shared(ids, lengths, count))
        parts = (None if part is None else part[:, :count] for part in found)
        found = Hypotheses(*parts)
        steps = tf.reduce_max(tf.concat([tf.reshape(found.lengths, [-1]), [1]], axis=0))
        if found.alignments is not None and found.token_log_probs is not None:
            found = found._replace(
                alignments=found.alignments[:, :, :steps, : tf.shape(ids)[1]],
                token_log_probs=found.token_log_probs[:, :, :steps],
            )
        return found._replace(ids=found.ids[:, :, :steps])

    def search(self, ids: Tensor, lengths: Tensor, count: Tensor) -> Hypotheses:
        """The search, in the bucket of the longest source."""
        ids = self.padded(ids, lengths)
        found = beam_search(
            self.model,
            ids,
            beam_size=self.options.beam_size,
            length_penalty=self.options.length_penalty,
            n_best=self.n_best,
            return_alignments=self.of_tokens,
            return_token_log_probs=self.of_tokens,
            needed=count,
        )
        if isinstance(self.model, ShortlistedSteps):
            return self.model.restored(found, ids)
        return found

    def padded(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Ids `[B, S]`, padded to the width of the bucket of the longest source."""
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        widths = tf.constant(self.options.buckets, tf.int32)
        width = widths[tf.reduce_sum(tf.cast(longest > widths, tf.int32))]
        ids = ids[:, :width]
        ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
        is_token = tf.sequence_mask(lengths, width)
        return tf.where(is_token, ids, self.model.pad_id)


def status_of_ids(
    ids: Tensor, lengths: Tensor, vocabulary_size: int, pad_id: int
) -> Tensor:
    """Whether rows of ids can be translated.

    Args:
        ids: int32 `[B, S]`; what is beyond the lengths is not looked at.
        lengths: int32 `[B]`.
        vocabulary_size: ids from 0 to below this are known.
        pad_id: of padding.

    Returns:
        int32 `[B]`, the first `Status` that applies.
    """
    width = tf.shape(ids)[1]
    is_read = tf.sequence_mask(lengths, width)
    problems = {
        Status.PADDING_INSIDE: tf.reduce_any(is_read & tf.equal(ids, pad_id), axis=1),
        Status.UNKNOWN_ID: tf.reduce_any(
            is_read & ((ids < 0) | (ids >= vocabulary_size)), axis=1
        ),
        Status.WRONG_LENGTH: (lengths < 0) | (lengths > width),
    }
    status = tf.zeros_like(lengths)
    for code, applies in problems.items():
        status = tf.where(applies, int(code), status)
    return status


def status_of_search(found: Hypotheses, status: Tensor) -> Tensor:
    """The status `[B]` of each row after a search, from that before it."""
    is_missing = tf.equal(found.lengths[:, 0], 0)
    nothing = tf.where(is_missing, int(Status.NOTHING_FOUND), int(Status.OK))
    return tf.where(tf.equal(status, int(Status.OK)), nothing, status)


def without_failed(found: Hypotheses, status: Tensor, pad_id: int) -> Hypotheses:
    """Hypotheses, where a row with another status than `OK` has none.

    As in `Hypotheses`, one that is missing consists of padding, with length 0 and
    `IMPOSSIBLE` as its score.
    """
    is_ok = tf.equal(status, int(Status.OK))[:, None]
    missing = {"ids": pad_id, "scores": IMPOSSIBLE, "log_probs": IMPOSSIBLE}

    def without(name: str, values: Tensor | None) -> Tensor | None:
        if values is None:
            return None
        rows = tf.reshape(is_ok, [-1] + [1] * (len(values.shape) - 1))
        return tf.where(rows, values, tf.constant(missing.get(name, 0), values.dtype))

    return Hypotheses(**{k: without(k, v) for k, v in found._asdict().items()})
