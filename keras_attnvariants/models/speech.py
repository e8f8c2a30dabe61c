"""The front end of speech recognition: recordings as inputs of an encoder.

Like a text, a recording is a row of integers. Each sample, 16 bits at 16,000 per
second, is a number from 1 to 65,535; 0 is padding.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.attention.calls import zero_masked
from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.attention.registry import Saved
from keras_attnvariants.backend import constant
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Shape
from keras_attnvariants.utils.typing import Tensor

SAMPLE_RATE = 16_000  # samples in a second
WINDOW = 400  # samples, 25 ms
HOP = 160  # samples from one window to the next, 10 ms
NUM_MELS = 80
# The id of silence, and the number of ids, padding included.
SILENCE = 1 << 15
NUM_LEVELS = 1 << 16
# The energy of the quietest tone that 16 bits can represent.
QUIETEST = 1e-6


def samples_to_ids(samples: Tensor) -> Tensor:
    """Samples from -1 to 1 as int32 from 1 to 65,535; louder ones are clipped."""
    scaled = ops.round(ops.cast(samples, "float32") * SILENCE)
    clipped = ops.clip(scaled, 1 - SILENCE, SILENCE - 1)
    return ops.cast(clipped, "int32") + SILENCE


def ids_to_samples(ids: Tensor) -> Tensor:
    """The inverse of `samples_to_ids`, float32; padding becomes silence."""
    samples = ops.cast(ops.cast(ids, "int32") - SILENCE, "float32") / SILENCE
    return ops.where(ops.equal(ids, 0), 0.0, samples)


def mel_filters() -> np.ndarray:
    """The weight that each filter gives to each frequency, `[201, 80]`.

    Triangles of height 1, at equal distances on the mel scale of Slaney (1998), from 0
    to 8,000 Hz: linear up to 1,000 Hz, logarithmic above.
    """
    frequencies = np.linspace(0, SAMPLE_RATE / 2, WINDOW // 2 + 1)
    logarithmic = 15 + 27 * np.log(np.maximum(frequencies, 1) / 1000) / math.log(6.4)
    mels = np.where(frequencies < 1000, frequencies * 3 / 200, logarithmic)
    corners = np.linspace(0, mels[-1], NUM_MELS + 2)
    # In Hertz: the sides of triangles are straight there.
    corners = np.where(
        corners < 15, corners * 200 / 3, 1000 * 6.4 ** ((corners - 15) / 27)
    )
    distances = np.diff(corners)
    offsets = corners - frequencies[:, None]
    rising, falling = -offsets[:, :-2] / distances[:-1], offsets[:, 2:] / distances[1:]
    return np.maximum(np.minimum(rising, falling), 0).astype("float32")


def padded(ids: Tensor, multiple: int) -> Tensor:
    """Ids `[B, S]`, padded with zeros to the next multiple of a number."""
    missing = -ops.shape(ids)[1] % multiple
    is_whole = isinstance(missing, int) and missing == 0
    return ids if is_whole else ops.pad(ids, [(0, 0), (0, missing)])


def log_mels(ids: Tensor, filters: Tensor) -> Tensor:
    """The log mel energies of recordings, 0 for silence.

    A window that begins with a real sample continues into the padding, which is silent.

    Args:
        ids: int `[B, S]`, `S` a multiple of 160.
        filters: float32 `[201, 80]`, see `mel_filters`.

    Returns:
        float32 `[B, S / 160, 80]`.
    """
    samples = ops.pad(ids_to_samples(ids), [(0, 0), (0, WINDOW - HOP)])
    real, imaginary = ops.stft(samples, WINDOW, HOP, WINDOW, center=False)
    energies = ops.matmul(ops.square(real) + ops.square(imaginary), filters)
    return ops.log(ops.maximum(energies / QUIETEST, 1))


def normalized(features: Tensor, is_real: Tensor) -> Tensor:
    """Features with mean 0 and variance 1 over the real frames of each recording.

    Args:
        features: float32 `[B, F, 80]`.
        is_real: bool `[B, F]`, false for padding, where the result is 0.
    """
    weights = ops.cast(is_real, "float32")[:, :, None]
    weights /= ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1)
    centred = features - ops.sum(features * weights, axis=1, keepdims=True)
    variance = ops.sum(ops.square(centred) * weights, axis=1, keepdims=True)
    return zero_masked(centred * ops.rsqrt(variance + 1e-5), is_real)


def ctc_loss(
    logits: Tensor, is_real: Tensor, target_ids: Tensor, pad_id: int
) -> Tensor:
    """The CTC loss of targets, given logits at the positions of an encoder.

    Connectionist temporal classification (Graves et al. 2006): the negative logarithm
    of the total probability of all ways to write the target with repetitions of its
    tokens and blanks between them. A target that is too long for its source adds
    nothing.

    Args:
        logits: `[B, S, V]`; the id of padding stands for the blank.
        is_real: bool `[B, S]`, which positions are real.
        target_ids: int `[B, T]`, starting with BOS.
        pad_id: id of padding.

    Returns:
        A float32 scalar: the sum, divided by the number of tokens with EOS.
    """
    labels = target_ids[:, 1:]
    is_label = ops.not_equal(labels, pad_id)
    counts, positions = (ops.sum(ops.cast(x, "int32"), 1) for x in (is_label, is_real))
    again = is_label[:, 1:] & ops.equal(labels[:, 1:], labels[:, :-1])
    fits = counts + ops.sum(ops.cast(again, "int32"), axis=1) <= positions
    losses = ops.ctc_loss(
        labels,
        ops.cast(logits, "float32"),
        ops.where(fits, counts, 0),
        ops.maximum(positions, 1),
        mask_index=pad_id,
    )
    count = ops.sum(ops.cast(ops.not_equal(target_ids, pad_id), "float32"))
    return ops.sum(ops.where(fits, losses, 0.0)) / ops.maximum(count, 1)


@keras.saving.register_keras_serializable(package=PACKAGE)
class SpeechFrontEnd(Saved, keras.layers.Layer):
    """Turns recordings into inputs of an encoder, one position for every 40 ms.

    It replaces the source embeddings of a `Transformer`:

        x = normalize(log(max(|STFT(samples)|^2 M / 1e-6, 1)))
        x = GLU(conv(GLU(conv(x))))

    Windows of 25 ms begin every 10 ms; `M` are 80 filters on the mel scale. Each
    filter has mean 0 and variance 1 over the windows of a recording, in float32
    regardless of the model's dtype. In training, stretches of time and bands of filters
    are set to the mean (SpecAugment, Park et al. 2019). Two convolutions of stride 2
    with gated linear units follow, as in fairseq's speech models. Padding is set to 0
    before each of them, and has no effect.

    Args:
        hidden_dim: width of the outputs and of the model.
        kernel_size: number of positions that a convolution spans.
        num_time_masks, num_mel_masks: how many stretches and bands are masked in
            training; 0 for none.
        longest_time_mask: maximum number of windows in a masked stretch, which is never
            longer than a fifth of a recording.
        widest_mel_mask: maximum number of filters in a masked band.
        seed: seed of the masks; `None` for a random one.
        **kwargs: as in `keras.layers.Layer`.

    Attributes:
        stride: number of samples per position.
        vocabulary_size: number of values of a sample, with padding.

    Raises:
        ValueError: an argument is out of range.

    Example:

    >>> layer = SpeechFrontEnd(hidden_dim=16)
    >>> second = samples_to_ids(np.sin(np.arange(16_000) / 10))
    >>> layer(second[None]).shape
    TensorShape([1, 25, 16])
    """

    stride = 4 * HOP
    vocabulary_size = NUM_LEVELS

    def __init__(
        self,
        hidden_dim: int,
        kernel_size: int = 5,
        num_time_masks: int = 2,
        longest_time_mask: int = 100,
        num_mel_masks: int = 2,
        widest_mel_mask: int = 27,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = check_integer("hidden_dim", hidden_dim)
        self.kernel_size = check_integer("kernel_size", kernel_size)
        self.num_time_masks = check_integer("num_time_masks", num_time_masks, 0)
        self.longest_time_mask = check_integer(
            "longest_time_mask", longest_time_mask, 0
        )
        self.num_mel_masks = check_integer("num_mel_masks", num_mel_masks, 0)
        self.widest_mel_mask = check_integer("widest_mel_mask", widest_mel_mask, 0)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.filters = constant(mel_filters())
        self.convolutions = [
            keras.layers.Conv1D(
                2 * hidden_dim,
                kernel_size,
                strides=2,
                padding="same",
                dtype=self.dtype_policy,
                name=f"convolution_{number}",
            )
            for number in range(2)
        ]

    def build(self, input_shape: Shape | None = None) -> None:
        self.convolutions[0].build((None, None, NUM_MELS))
        self.convolutions[1].build((None, None, self.hidden_dim))

    def compute_output_spec(
        self, inputs: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        batch, samples = inputs.shape
        length = None if samples is None else -(-samples // self.stride)
        shape = (batch, length, self.hidden_dim)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def mask(self, ids: Tensor) -> Tensor:
        """A mask of the real positions of recordings `[B, S]`: bool `[B, S / 640]`."""
        return ops.not_equal(ids[:, :: self.stride], 0)

    def features(self, ids: Tensor) -> Tensor:
        """The normalized log mel energies of recordings `[B, S]`.

        Returns:
            float32 `[B, S / 160, 80]`, 0 for padding.
        """
        ids = padded(ids, HOP)
        return normalized(log_mels(ids, self.filters), ops.not_equal(ids[:, ::HOP], 0))

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        """Recordings `[B, S]` to `[B, S / 640, hidden_dim]`, rounded up.

        Args:
            inputs: int, samples as `samples_to_ids` returns them, padded with 0 on the
                right.
            training: whether features are masked.
        """
        ids = padded(inputs, self.stride)
        x = self.features(ids)
        if training:
            x = self.masked(x, ops.not_equal(ids[:, ::HOP], 0))
        x = ops.cast(x, self.compute_dtype)
        for number, convolution in enumerate(self.convolutions, start=1):
            x = ops.glu(convolution(x))
            x = zero_masked(x, ops.not_equal(ids[:, :: HOP * 2**number], 0))
        return x

    def masked(self, features: Tensor, is_real: Tensor) -> Tensor:
        """Features `[B, F, 80]` with 0 in random stretches of time and bands."""
        windows = ops.sum(ops.cast(is_real, "float32"), axis=1)
        longest = ops.minimum(windows / 5, self.longest_time_mask)
        time = self.random_spans(self.num_time_masks, longest, windows, features, 1)
        mels = ops.full_like(windows, NUM_MELS)
        widest = ops.full_like(windows, self.widest_mel_mask)
        mel = self.random_spans(self.num_mel_masks, widest, mels, features, 2)
        return ops.where(time[:, :, None] | mel[:, None], 0.0, features)

    def random_spans(
        self, count: int, widest: Tensor, size: Tensor, features: Tensor, axis: int
    ) -> Tensor:
        """A mask of random spans along an axis, which may overlap.

        Args:
            count: number of spans.
            widest: float32 `[B]`, their maximum width.
            size: float32 `[B]`, number of places that they may cover.
            features: `[B, F, 80]`.
            axis: 1 or 2.

        Returns:
            bool `[B, F]` or `[B, 80]`.
        """
        shape = ops.shape(features)
        numbers = keras.random.uniform((2, shape[0], count), seed=self.seed_generator)
        widths = ops.floor(numbers[0] * (widest[:, None] + 1))
        starts = ops.floor(numbers[1] * (size[:, None] - widths + 1))
        places = ops.cast(ops.arange(shape[axis]), "float32")
        distances = places[None, :, None] - starts[:, None]
        is_inside = (distances >= 0) & (distances < widths[:, None])
        return ops.any(is_inside, axis=-1)
