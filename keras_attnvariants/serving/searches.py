"""The searches of an exported model: one graph for each width of sources."""

import functools

import keras
import tensorflow as tf

from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving.options import Options
from keras_attnvariants.utils.typing import Tensor


class BucketedSearch:
    """Searches in the narrowest bucket that holds all sources of a request.

    Args:
        model: a step model.
        options: of the search, with the widths of the buckets.
        n_best: translations of each sentence.
        return_alignments: whether to return attention over the source.
    """

    def __init__(
        self,
        model: keras.Model,
        options: Options,
        n_best: int = 1,
        return_alignments: bool = False,
    ) -> None:
        self.model = model
        self.options = options
        self.n_best = n_best
        self.return_alignments = return_alignments
        # One function per bucket, which all signatures share.
        inputs = [
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None], tf.int32),
        ]
        self.by_width = {
            width: tf.function(functools.partial(self.search, width), inputs)
            for width in options.buckets
        }

    def __call__(self, ids: Tensor, lengths: Tensor) -> Hypotheses:
        """The translations of ids, cut to the longest of them.

        Args:
            ids: int32 `[B, S]`; what is beyond the lengths may be anything.
            lengths: int32 `[B]`, at most the width of the widest bucket.
        """
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        *narrower, _ = self.by_width
        widths = tf.constant(narrower, tf.int32)
        bucket = tf.reduce_sum(tf.cast(longest > widths, tf.int32))
        branches = [lambda run=run: run(ids, lengths) for run in self.by_width.values()]
        found = Hypotheses(*tf.switch_case(bucket, branches))
        steps = tf.reduce_max(tf.concat([tf.reshape(found.lengths, [-1]), [1]], axis=0))
        alignments = found.alignments
        if alignments is not None:
            alignments = alignments[:, :, :steps, : tf.shape(ids)[1]]
        return found._replace(ids=found.ids[:, :, :steps], alignments=alignments)

    def padded(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Ids `[B, S]`, padded to the width of the bucket of the longest source."""
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        widths = tf.constant(self.options.buckets, tf.int32)
        width = widths[tf.reduce_sum(tf.cast(longest > widths, tf.int32))]
        ids = ids[:, :width]
        ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
        is_token = tf.sequence_mask(lengths, width)
        return tf.where(is_token, ids, self.model.pad_id)

    def search(self, width: int, ids: Tensor, lengths: Tensor) -> Hypotheses:
        """The search of one bucket."""
        ids = ids[:, :width]
        ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
        ids = tf.ensure_shape(ids, [None, width])
        is_token = tf.sequence_mask(lengths, width)
        return beam_search(
            self.model,
            tf.where(is_token, ids, self.model.pad_id),
            beam_size=self.options.beam_size,
            length_penalty=self.options.length_penalty,
            n_best=self.n_best,
            return_alignments=self.return_alignments,
        )
