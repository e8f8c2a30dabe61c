"""Recordings as inputs of signatures: samples as ids, with limits in the graph."""

import tensorflow as tf

from keras_attnvariants.models.speech import samples_to_ids
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.utils.typing import Tensor

AUDIO = Input("audio", tf.float32, "samples from -1 to 1, 16,000 a second", rank=2)
SAMPLES = Input("lengths", tf.int32, "samples of each row; beyond may be anything")


class GraphRecordings:
    """A reader of recordings as TensorFlow operators.

    Args:
        stride: samples in a position of the encoder.
        seconds: seconds of a position.

    Attributes:
        inputs, scored: what a signature takes for recordings.
    """

    inputs = scored = (AUDIO, SAMPLES)

    def __init__(self, stride: int, seconds: float) -> None:
        self.stride, self.seconds = stride, seconds

    def encode(
        self, audio: Tensor, lengths: Tensor, max_tokens: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The ids of recordings, padded to whole positions.

        Args:
            audio: float32 `[B, S]`; a sample that is not a number is read as silence.
            lengths: int32 `[B]`, in samples.
            max_tokens: positions of a recording that are kept.

        Returns:
            ids int32 `[B, S]`, lengths int32 `[B]`, 0 where those given are wrong,
            and bool `[B]`, True for recordings that were cut.
        """
        lengths = tf.where(self.is_valid(audio, lengths), lengths, 0)
        limit = max_tokens * self.stride
        is_cut, lengths = lengths > limit, tf.minimum(lengths, limit)
        audio = audio[:, :limit]
        audio = tf.pad(audio, [[0, 0], [0, -tf.shape(audio)[1] % self.stride]])
        ids = samples_to_ids(tf.where(tf.math.is_nan(audio), 0.0, audio))
        is_sample = tf.sequence_mask(lengths, tf.shape(ids)[1])
        return tf.where(is_sample, ids, 0), lengths, is_cut

    def is_valid(self, audio: Tensor, lengths: Tensor) -> Tensor:
        """Bool `[B]`, True where a length is one of the samples that are there."""
        return (lengths >= 0) & (lengths <= tf.shape(audio)[1])

    def pieces(self, ids: Tensor) -> Tensor:
        """The second at which each position begins, `""` for padding: string."""
        is_real = tf.not_equal(ids[:, :: self.stride], 0)
        starts = tf.range(tf.shape(is_real)[1])
        starts = tf.cast(starts, tf.float32) * self.seconds
        return tf.where(is_real, tf.strings.as_string(starts, precision=2), "")
