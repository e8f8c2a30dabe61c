"""Recordings as rows of integers, just as texts are rows of subwords.

A sample of 16 bits at 16,000 Hz is one id: its value, at least -32,767, plus 32,768.
Thus 0 is padding, as in texts.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import warnings
import wave
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.data.sentencepiece_models import SPACE
from keras_attnvariants.data.text_files import check_file
from keras_attnvariants.data.text_files import read_text_lines
from keras_attnvariants.data.tokenizer import BOS_ID
from keras_attnvariants.data.tokenizer import EOS_ID
from keras_attnvariants.data.tokenizer import PAD_ID
from keras_attnvariants.data.tokenizer import UNK_ID
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.checks import listed
from keras_attnvariants.utils.machine import check_extra

SAMPLE_RATE = 16_000
SILENCE = 1 << 15  # the id of a sample of 0
# Other rates are mistakes, and resampling them could take unbounded memory.
_RATES = (1_000, 768_000)
_BLOCK = 1 << 16
# A line of libsndfile's log if a WAV header declares another size than the file has.
_RIFF = re.compile(r"^RIFF : (?P<declared>\d+) \(should be (?P<real>\d+)\)", re.M)


class AudioTokenizer:
    """Encodes recordings as rows of ids, and decodes subwords to texts.

    Args:
        target: the tokenizer of the texts, or another `AudioTokenizer` with it.

    Attributes:
        target: the tokenizer of the texts.
        source_stride: number of ids per encoder position, which lasts 40 ms.
        reads: kind of its sources, `"audio"`.

    Example:

    ```python
    tokenizer = kav.data.AudioTokenizer(kav.Tokenizer.load("tokenizer.model"))
    [ids] = tokenizer.encode(["hello.wav"])
    ```
    """

    pad_id, unk_id, bos_id, eos_id = PAD_ID, UNK_ID, BOS_ID, EOS_ID
    source_stride = 640
    reads = "audio"
    vocabulary_size = 1 << 16
    tags = ()

    def __init__(self, target: Tokenizer | AudioTokenizer) -> None:
        self.target: Tokenizer = target.target
        self.model_bytes = self.target.model_bytes
        self.sha256 = self.target.sha256

    def encode(
        self, texts: Sequence[os.PathLike[str] | str], longest: int | None = None
    ) -> list[np.ndarray]:
        """The ids of recordings by their paths, uint16 `[samples]` each.

        `""` stands for an unreadable recording, and has no ids.

        Args:
            texts: the paths.
            longest: number of ids to read of a recording; `None` for all.

        Raises:
            FileNotFoundError: there is no such recording.
            ValueError: it is not a recording, or is damaged.
        """
        none: np.ndarray = np.zeros(0, np.uint16)
        paths = listed("texts", texts, "paths")
        return [ids_of(samples_of(x, longest)) if x else none for x in paths]

    def split(self, texts: Sequence[os.PathLike[str] | str]) -> list[list[str]]:
        """The start times of the encoder positions, in seconds, of each recording."""
        starts = (range(0, len(x), self.source_stride) for x in self.encode(texts))
        return [[f"{SPACE}{at / SAMPLE_RATE:.2f}" for at in row] for row in starts]

    def encode_file(
        self, path: os.PathLike[str]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields the ids of each recording that a file lists, and their number.

        An empty line gives no ids. Neither does an unreadable recording, about which
        there is a warning.
        """
        for line in read_text_lines(path):
            try:
                [ids] = self.encode([line])
            except (OSError, ValueError) as error:
                warnings.warn(f"Left out: {error}", stacklevel=2)
                [ids] = self.encode([""])
            yield ids, np.array([len(ids)])

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """The text of each row of ids of subwords; see `Tokenizer.decode`."""
        return self.target.decode(ids)

    def __repr__(self) -> str:
        return f"AudioTokenizer({self.target!r})"


def ids_of(samples: np.ndarray) -> np.ndarray:
    """The ids of float samples from -1 to 1, uint16.

    They equal those of `models.speech.samples_to_ids`. That function uses Keras, so
    JAX would compile it again for each length.
    """
    scaled = np.rint(samples * np.float32(SILENCE))
    clipped = np.clip(scaled, 1 - SILENCE, SILENCE - 1)
    return (clipped + SILENCE).astype(np.uint16)


def wav_of(samples: np.ndarray) -> bytes:
    """A WAV file of float samples from -1 to 1 at 16,000 Hz, for requests to servers.

    It has 16 bits per sample, and therefore the same ids.
    """
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, SAMPLE_RATE, 0, "NONE", ""))
        file.writeframes(
            (ids_of(samples).astype(int) - SILENCE).astype("<i2").tobytes()
        )
    return buffer.getvalue()


def samples_of(path: os.PathLike[str] | str, longest: int | None = None) -> np.ndarray:
    """The samples of a recording at 16,000 Hz, float32 `[samples]`.

    Channels are averaged. A truncated WAV file gives the samples that it has.

    Args:
        path: its file.
        longest: number of samples to read; `None` for all.

    Raises:
        FileNotFoundError: there is no such recording.
        ValueError: it is not a recording, or is damaged.
    """
    import soxr

    with open_recording(path) as file:
        stream = soxr.ResampleStream(file.samplerate, SAMPLE_RATE, 1, "float32")
        # In blocks, so that memory holds only one channel at 16,000 Hz.
        blocks = file.blocks(_BLOCK, dtype="float32", always_2d=True)
        parts, count = [], 0
        for block in blocks:
            parts.append(stream.resample_chunk(block.mean(axis=1)))
            count += len(parts[-1])
            if longest is not None and count >= longest:
                break
        else:
            parts.append(stream.resample_chunk(np.zeros(0, np.float32), last=True))
    samples: np.ndarray = np.concatenate(parts)[:longest]
    if not np.isfinite(samples).all():
        raise ValueError(
            f"A recording must have finite samples only. Received: {os.fspath(path)}"
        )
    return samples


def check_recording(path: Path) -> None:
    """Raises unless a recording has samples and is complete.

    It reads the header and the last sample.

    Raises:
        FileNotFoundError: there is no such recording.
        ValueError: it is not a recording, or is damaged or empty.
    """
    with open_recording(path) as file:
        file.seek(max(file.frames - 1, 0))
        if not len(file.read(1)):
            raise ValueError(f"A recording must not be empty. Received: {path}")
        # libsndfile reads what is there, and only reports what is missing.
        sizes = _RIFF.search(file.extra_info)
        if sizes and int(sizes["declared"]) > int(sizes["real"]) + 1:
            raise ValueError(f"A recording must be complete. Received: {path}")


def modification_digest(folder: Path, paths: Iterable[bytes]) -> str:
    """A digest that changes when a recording is written to, replaced or moved."""
    digest = hashlib.sha256()
    for path in paths:
        place = os.path.join(os.fsencode(folder.resolve()), path)
        digest.update(place)
        # Cleaning reports missing files and invalid names.
        with suppress(OSError, ValueError):
            status = os.stat(place)
            digest.update(f" {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextmanager
def open_recording(path: os.PathLike[str] | str) -> Iterator[Any]:
    """Context that opens a recording as a `soundfile.SoundFile`, with one-line errors.

    Raises:
        FileNotFoundError: there is no such recording.
        ValueError: it is not a recording, or is damaged.
    """
    check_extra("Recordings", "speech", ["soundfile", "soxr"])
    import soundfile

    check_file(path, "recording")
    try:
        with soundfile.SoundFile(path) as file:
            if not _RATES[0] <= file.samplerate <= _RATES[1]:
                raise ValueError(
                    f"A recording must have {_RATES[0]:,} to {_RATES[1]:,} samples "
                    f"per second. Received: {file.samplerate:,} in {os.fspath(path)}"
                )
            yield file
    except soundfile.SoundFileError as error:
        reason = getattr(error, "error_string", str(error)).rstrip(".")
        raise ValueError(
            "This is not a recording such as WAV or FLAC, or it is damaged "
            f"({reason}). Received: {os.fspath(path)}"
        ) from error
