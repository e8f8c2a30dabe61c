"""Recordings as inputs of signatures: samples as ids, with limits in the graph."""

import tensorflow as tf

from keras_attnvariants.data.audio import SAMPLE_RATE
from keras_attnvariants.models.speech import samples_to_ids
from keras_attnvariants.serving.inputs import Input
from keras_attnvariants.serving.translator import Status
from keras_attnvariants.utils.typing import Tensor

AUDIO = Input("audio", tf.float32, "samples from -1 to 1, 16,000 a second", rank=2)
SAMPLES = Input("lengths", tf.int32, "samples of each row; the rest is ignored")
WAV = Input("wav", tf.string, "WAV files: 16-bit PCM, 16,000 Hz, channels averaged")

_FILE_HEADER, _CHUNK_HEADER = 12, 8  # in bytes
_CHUNKS = 64  # largest number before the samples
_PCM = (1, 0xFFFE)  # without and with an extended description


class GraphRecordings:
    """A reader of recordings as TensorFlow operators.

    Args:
        stride: samples for each position of the encoder.

    Attributes:
        inputs, scored: inputs of signatures that take recordings.
        files: inputs of signatures that take whole files.
    """

    inputs = scored = (AUDIO, SAMPLES)
    files = (WAV,)

    def __init__(self, stride: int) -> None:
        self.stride = stride

    def read(
        self, audio: Tensor, lengths: Tensor, max_tokens: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The ids of recordings, padded to whole positions.

        Args:
            audio: float32 `[B, S]`; a sample that is not a number is read as silence.
            lengths: int32 `[B]`, in samples.
            max_tokens: positions of a recording that are kept.

        Returns:
            ids int32 `[B, S]`, lengths int32 `[B]`, 0 for invalid ones,
            bool `[B]`, True for recordings that were cut, and the status, int32 `[B]`.
        """
        is_valid = (lengths >= 0) & (lengths <= tf.shape(audio)[1])
        status = tf.where(is_valid, int(Status.OK), int(Status.WRONG_LENGTH))
        lengths = tf.where(is_valid, lengths, 0)
        limit = max_tokens * self.stride
        is_cut, lengths = lengths > limit, tf.minimum(lengths, limit)
        audio = audio[:, :limit]
        audio = tf.pad(audio, [[0, 0], [0, -tf.shape(audio)[1] % self.stride]])
        ids = samples_to_ids(tf.where(tf.math.is_nan(audio), 0.0, audio))
        is_sample = tf.sequence_mask(lengths, tf.shape(ids)[1])
        return tf.where(is_sample, ids, 0), lengths, is_cut, status

    def read_files(
        self, wav: Tensor, max_tokens: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The recordings in WAV files as inputs, and the status of each, int32 `[B]`.

        A file that cannot be read has no samples. One extra sample shows that a file is
        cut.

        Args:
            wav: string `[B]`, bytes of files.
            max_tokens: positions of a recording that are kept.
        """
        longest = max_tokens * self.stride + 1
        bytes_of_all = tf.concat([tf.strings.length(wav), [0]], axis=0)
        width = tf.minimum(tf.reduce_max(bytes_of_all) // 2, longest)
        specs = tf.TensorSpec([None], tf.float32), *[tf.TensorSpec([], tf.int32)] * 2
        audio, lengths, status = tf.map_fn(
            lambda data: read_wav(data, width), wav, fn_output_signature=specs
        )
        return {AUDIO.name: audio, SAMPLES.name: lengths}, status

    def pieces(self, ids: Tensor) -> Tensor:
        """The second at which each position begins, `""` for padding: string."""
        is_real = tf.not_equal(ids[:, :: self.stride], 0)
        starts = tf.range(tf.shape(is_real)[1])
        starts = tf.cast(starts, tf.float32) * (self.stride / SAMPLE_RATE)
        return tf.where(is_real, tf.strings.as_string(starts, precision=2), "")


def read_wav(data: Tensor, width: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The samples of one WAV file; an invalid file does not fail the others.

    `tf.audio.decode_wav` would fail the request, which many clients may share.

    Args:
        data: string `[]`, the bytes of the file.
        width: int32 `[]`, samples that are kept.

    Returns:
        float32 `[width]`, padded with 0, the number of samples, and the `Status`.
    """
    size = tf.strings.length(data)
    header = integers(data, 0, tf.int32, _FILE_HEADER)
    form, start, length = chunks_of(data)
    kind, channels, low, high, *_, frame, bits = tf.unstack(tf.cast(form, tf.int32))
    is_whole = (start > 0) & (length <= size - start) & (channels > 0)
    is_pcm = tf.reduce_any(tf.equal(kind, _PCM)) & tf.equal(bits, 16)
    is_pcm &= tf.equal(frame, 2 * channels)
    is_wav = tf.equal(header[0], fourcc(b"RIFF"))
    is_wav &= tf.equal(header[2], fourcc(b"WAVE"))
    is_wav &= is_whole & is_pcm
    status = tf.where(is_wav, int(Status.OK), int(Status.WRONG_FILE))
    is_rate = tf.equal(low, SAMPLE_RATE) & tf.equal(high, 0)
    status = tf.where(is_wav & ~is_rate, int(Status.WRONG_RATE), status)
    is_read = tf.equal(status, int(Status.OK))
    channels = tf.where(is_read, channels, 1)
    count = tf.where(is_read, tf.minimum(length // (2 * channels), width), 0)
    values = tf.strings.substr(data, tf.where(is_read, start, 0), 2 * channels * count)
    values = tf.reshape(tf.io.decode_raw(values, tf.int16), [-1, channels])
    samples = tf.reduce_mean(tf.cast(values, tf.float32), axis=1) / 32768
    return tf.pad(samples, [[0, width - count]]), count, status


def chunks_of(data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The format of a WAV file, uint16 `[8]`, and place and size of its samples.

    Values that the file lacks are 0.
    """
    size = tf.strings.length(data)

    def has_next(place: Tensor, form: Tensor, start: Tensor, length: Tensor) -> Tensor:
        return (place <= size - _CHUNK_HEADER) & tf.equal(start, 0)

    def read_chunk(
        place: Tensor, form: Tensor, start: Tensor, length: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        name, number = tf.unstack(integers(data, place, tf.int32, _CHUNK_HEADER))
        place += _CHUNK_HEADER
        is_form = tf.equal(name, fourcc(b"fmt "))
        is_data = tf.equal(name, fourcc(b"data"))
        form = tf.where(is_form, integers(data, place, tf.uint16, 16), form)
        start = tf.where(is_data, place, start)
        # The largest numbers are negative here; no file has so many bytes.
        number = tf.where(number < 0, tf.int32.max, number)
        length = tf.where(is_data, number, length)
        # Chunks begin at even places.
        place += tf.minimum(number, size - place) + number % 2
        return place, form, start, length

    first = tf.constant(_FILE_HEADER), tf.zeros([8], tf.uint16), 0, 0
    found = tf.while_loop(has_next, read_chunk, first, maximum_iterations=_CHUNKS)
    return found[1:]


def integers(data: Tensor, place: Tensor | int, kind: tf.DType, count: int) -> Tensor:
    """`count` bytes of a string, from a place on, as integers; 0 beyond its end."""
    part = tf.strings.substr(data, place, count)
    return tf.io.decode_raw(part, kind, fixed_length=count)


def fourcc(name: bytes) -> int:
    """A four-character code as an integer, as `integers` reads it."""
    return int.from_bytes(name, "little")
