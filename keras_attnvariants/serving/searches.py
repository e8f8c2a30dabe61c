"""The search of an exported model: one graph, for sources of any width."""

import keras
import tensorflow as tf

from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving.options import Options
from keras_attnvariants.serving.shortlisted import ShortlistedSteps
from keras_attnvariants.utils.typing import Tensor


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
