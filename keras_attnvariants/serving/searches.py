"""Searches of an exported model, in buckets by width of the sources."""

from dataclasses import dataclass

import keras
import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.shortlisted import ShortlistedSteps
from keras_attnvariants.serving.translator import Status
from keras_attnvariants.utils.typing import Tensor


@dataclass(eq=False)
class BucketedSearch:
    """Searches in the narrowest bucket that holds all sources of a request.

    A bucket is a width to which sources are padded. All buckets share one graph, but
    TensorFlow prepares its matrix products anew for every shape.

    Args:
        model: a step model.
        options: options of the search, with the widths of the buckets.
        n_best: translations of each sentence.
        of_tokens: whether to return, for each token of a translation, attention over
            the source and its log probability.
    """

    model: keras.Model
    options: Options
    n_best: int = 1
    of_tokens: bool = False

    def __post_init__(self) -> None:
        self.stride = getattr(self.model, "source_stride", 1)
        # One function, which all signatures share.
        shapes: list[list[None]] = [[None, None], [None], []]
        inputs = [tf.TensorSpec(shape, tf.int32) for shape in shapes]
        self.shared = tf.function(self.search, inputs, autograph=False)

    def __call__(
        self, ids: Tensor, lengths: Tensor, count: int | None = None
    ) -> Hypotheses:
        """The translations of ids, cut to the longest of them.

        Args:
            ids: int32 `[B, S]`; values beyond the lengths are ignored.
            lengths: int32 `[B]`, at most the width of the widest bucket.
            count: translations of each sentence, from 1 to `n_best`, the default.
                Fewer are found sooner.
        """
        count = self.n_best if count is None else count
        found = self.shared(ids, lengths, count)
        found = Hypotheses(*(x if x is None else x[:, :count] for x in found))
        steps = tf.reduce_max(tf.concat([tf.reshape(found.lengths, [-1]), [1]], axis=0))
        if found.alignments is not None and found.token_log_probs is not None:
            positions = -(-tf.shape(ids)[1] // self.stride)
            alignments = found.alignments[:, :, :steps, :positions]
            log_probs = found.token_log_probs[:, :, :steps]
            found = found._replace(alignments=alignments, token_log_probs=log_probs)
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
        is_short = isinstance(self.model, ShortlistedSteps)
        return self.model.restored(found, ids) if is_short else found

    def padded(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Ids `[B, S]`, padded to the width of the bucket of the longest source."""
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        widths = tf.constant(self.options.buckets, tf.int32) * self.stride
        width = widths[tf.reduce_sum(tf.cast(longest > widths, tf.int32))]
        ids = ids[:, :width]
        ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
        is_token = tf.sequence_mask(lengths, width)
        return tf.where(is_token, ids, self.model.pad_id)


def status_of_ids(
    ids: Tensor, lengths: Tensor, vocabulary_size: int, pad_id: int
) -> Tensor:
    """The status of rows of ids: whether they can be translated.

    Args:
        ids: int32 `[B, S]`; values beyond the lengths are ignored.
        lengths: int32 `[B]`.
        vocabulary_size: ids from 0 to `vocabulary_size - 1` are known.
        pad_id: id of padding.

    Returns:
        int32 `[B]`, the first `Status` that applies.
    """
    width = tf.shape(ids)[1]
    is_read = tf.sequence_mask(lengths, width)
    is_unknown = (ids < 0) | (ids >= vocabulary_size)
    problems = {
        Status.PADDING_INSIDE: tf.reduce_any(is_read & tf.equal(ids, pad_id), axis=1),
        Status.UNKNOWN_ID: tf.reduce_any(is_read & is_unknown, axis=1),
        Status.WRONG_LENGTH: (lengths < 0) | (lengths > width),
    }
    status = tf.zeros_like(lengths)
    for code, applies in problems.items():
        status = tf.where(applies, int(code), status)
    return status


def with_status(
    found: Hypotheses, status: Tensor, pad_id: int
) -> tuple[Hypotheses, Tensor]:
    """Hypotheses, none for rows that fail, and the status of each row.

    As in `Hypotheses`, a missing hypothesis consists of padding, with length 0 and
    `IMPOSSIBLE` as its score.

    Args:
        found: hypotheses of a search.
        status: int32 `[B]`, the status of each row before the search.
        pad_id: id of padding.
    """
    is_ok = tf.equal(status, int(Status.OK))
    nothing = is_ok & tf.equal(found.lengths[:, 0], 0)
    status = tf.where(nothing, int(Status.NOTHING_FOUND), status)
    missing = {"ids": pad_id, "scores": IMPOSSIBLE, "log_probs": IMPOSSIBLE}
    kept = {name: x for name, x in found._asdict().items() if x is not None}
    for name, x in kept.items():
        rows = tf.reshape(is_ok & ~nothing, [-1] + [1] * (len(x.shape) - 1))
        kept[name] = tf.where(rows, x, tf.constant(missing.get(name, 0), x.dtype))
    return found._replace(**kept), status
