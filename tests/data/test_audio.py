"""Recordings as rows of ids."""

import copy
import os
import re
import tracemalloc

import numpy as np
import pytest

from keras_attnvariants.data import Tokenizer
from keras_attnvariants.data import audio
from keras_attnvariants.data.audio import AudioTokenizer
from tests.data import recordings
from tests.data.recordings import tone

soundfile = pytest.importorskip("soundfile")


@pytest.fixture(scope="module")
def reader():
    subwords = Tokenizer.train(recordings.TEXTS * 3, 24, may_shrink=True)
    return AudioTokenizer(subwords)


def samples(ids):
    return (ids.astype("float64") - 32768) / 32768


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_samples_are_exact_ids(tmp_path, reader, name):
    values = np.array([0, 1, -1, 1234, 32767, -32767, -32768], "int16")
    path = recordings.write(tmp_path / name, values)
    [ids] = reader.encode([path])
    assert ids.dtype == np.uint16
    assert ids.tolist() == (np.maximum(values.astype(int), -32767) + 32768).tolist()
    assert ids.min() == 1  # never padding


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_another_rate_is_resampled(tmp_path, reader, rate):
    path = recordings.write(tmp_path / "a.wav", tone(1, rate), rate)
    [ids] = reader.encode([str(path)])
    assert len(ids) == 16_000
    middle = slice(1000, -1000)
    assert np.abs(samples(ids)[middle] - tone(1)[middle]).max() < 2e-3


def test_blocks_resample_as_the_whole(tmp_path, monkeypatch):
    soxr = pytest.importorskip("soxr")
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 30_000).astype("float32")
    path = recordings.write(tmp_path / "a.wav", noise, 44_100, subtype="FLOAT")
    monkeypatch.setattr(audio, "_BLOCK", 1000)
    expected = soxr.resample(noise, 44_100, 16_000)
    np.testing.assert_allclose(audio.samples_of(path), expected, atol=1e-6)


def test_positions_begin_every_40_ms(tmp_path, reader):
    path = recordings.write(tmp_path / "a.wav", tone(0.1))
    assert reader.split([path, ""]) == [["▁0.00", "▁0.04", "▁0.08"], []]


def test_channels_are_averaged(tmp_path, reader):
    left, right = tone(pitch=300), tone(pitch=500)
    path = recordings.write(tmp_path / "a.flac", np.stack([left, right], axis=1))
    [ids] = reader.encode([path])
    np.testing.assert_allclose(samples(ids), (left + right) / 2, atol=1e-4)


def test_what_is_beyond_the_range_is_clipped(tmp_path, reader):
    loud = tone(volume=3.0)
    path = recordings.write(tmp_path / "a.wav", loud, subtype="FLOAT")
    [ids] = reader.encode([path])
    assert (ids.min(), ids.max()) == (1, 65_535)
    np.testing.assert_allclose(samples(ids), np.clip(loud, -1, 1), atol=1e-4)


@pytest.mark.parametrize("name", ["silence", "noise", "empty"])
def test_sound_without_speech_is_read(tmp_path, reader, name):
    noise = np.random.default_rng(0).uniform(-1, 1, 16_000).astype("float32")
    values = {"silence": 0 * noise, "noise": noise, "empty": noise[:0]}[name]
    [ids] = reader.encode([recordings.write(tmp_path / "a.wav", values)])
    assert len(ids) == len(values)
    np.testing.assert_allclose(samples(ids), values, atol=1e-4)


def test_a_wav_file_that_ends_early_has_what_it_has(tmp_path, reader):
    path = recordings.write(tmp_path / "a.wav", tone())
    [whole] = reader.encode([path])
    [ids] = reader.encode([recordings.cut(path)])
    assert 1900 < len(ids) < 2000
    assert ids.tolist() == whole[: len(ids)].tolist()


def bad_file(folder, kind):
    path = folder / "a.wav"
    if kind == "truncated":
        noise = np.random.default_rng(0).uniform(-1, 1, 160_000).astype("float32")
        return recordings.cut(recordings.write(folder / "a.flac", noise))
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "text":
        path.write_text("Good morning.\n" * 100)
    elif kind == "nothing":
        path.write_bytes(b"")
    elif kind == "NaN":
        recordings.write(path, np.full(100, np.nan, "float32"), subtype="FLOAT")
    elif kind == "slow":
        recordings.write(path, tone(), 10)
    return path


MESSAGES = {
    "missing": "There is no such recording.",
    "folder": "It must be a file, not a folder or pipe.",
    "pipe": "It must be a file, not a folder or pipe.",
    "text": "This is not a recording such as WAV or FLAC",
    "nothing": "This is not a recording such as WAV or FLAC",
    "truncated": "or it is damaged",
    "NaN": "finite",
    "slow": "1,000 to 768,000 samples per second",
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_no_recording_is_an_error_in_one_line(tmp_path, reader, kind):
    path = bad_file(tmp_path, kind)
    error = FileNotFoundError if kind == "missing" else ValueError
    with pytest.raises(error, match=re.escape(MESSAGES[kind])) as caught:
        reader.encode([path])
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value).partition("Received: ")[2]


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "truncated"])
def test_bad_recordings_are_found_before_all_is_read(tmp_path, kind):
    path = bad_file(tmp_path, kind)
    with pytest.raises((OSError, ValueError), match=re.escape(MESSAGES[kind])):
        audio.check_recording(path)
    audio.check_recording(recordings.write(tmp_path / "good.flac", tone()))


def test_an_incomplete_recording_is_bad_in_a_corpus(tmp_path):
    path = recordings.write(tmp_path / "a.wav", tone())
    audio.check_recording(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="must be complete"):
        audio.check_recording(path)
    # Programs that write to a pipe do not know the size.
    path.write_bytes(whole[:4] + b"\xff" * 4 + whole[8:])
    audio.check_recording(path)


def test_an_empty_recording_is_bad_in_a_corpus(tmp_path):
    path = recordings.write(tmp_path / "a.wav", tone()[:0])
    with pytest.raises(ValueError, match="must not be empty"):
        audio.check_recording(path)


def test_rows_of_a_file(tmp_path, reader):
    good = recordings.write(tmp_path / "good.wav", tone())
    (tmp_path / "train.audio").write_text(f"{good}\n\n{tmp_path}/missing.wav\n{good}\n")
    with pytest.warns(UserWarning, match="Left out: There is no such recording"):
        rows = list(reader.encode_file(tmp_path / "train.audio"))
    [ids] = reader.encode([good])
    assert [row.tolist() for row, _ in rows] == [ids.tolist(), [], [], ids.tolist()]
    assert [int(length) for _, [length] in rows] == [4000, 0, 0, 4000]


def test_texts_are_those_of_the_subwords(reader):
    ids = reader.target.encode(["four five six"])
    assert reader.decode(ids) == ["four five six"]
    assert reader.sha256 == reader.target.sha256
    assert AudioTokenizer(reader).target is reader.target
    copied = copy.deepcopy(reader)
    assert copied.decode(ids) == ["four five six"]
    with pytest.raises(TypeError, match="must be a list of paths"):
        reader.encode("a.wav")


def test_of_a_long_recording_only_the_beginning_is_read(tmp_path, reader):
    path = recordings.write(tmp_path / "hour.wav", hour(), 8_000, subtype="PCM_U8")
    [whole] = reader.encode([path])
    assert len(whole) == 3600 * 16_000
    tracemalloc.start()
    [ids] = reader.encode([path], longest=40_961)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ids.tolist() == whole[:40_961].tolist()
    assert peak < 4e6  # the whole is 230 MB of floats


def hour():
    """An hour of noise at 8,000 Hz."""
    second = np.random.default_rng(1).uniform(-0.5, 0.5, 8_000).astype("float32")
    return np.tile(second, 3600)


def test_ids_are_those_of_the_front_end(tmp_path, reader):
    from keras_attnvariants.models.speech import SpeechFrontEnd
    from keras_attnvariants.models.speech import samples_to_ids

    noise = np.random.default_rng(0).uniform(-1.5, 1.5, 10_000)
    halves = np.arange(-9, 9) / 2 / 32768
    signal = np.concatenate([noise, halves, [-1, 1, 0]]).astype("float32")
    assert audio.ids_of(signal).tolist() == np.asarray(samples_to_ids(signal)).tolist()
    assert AudioTokenizer.source_stride == SpeechFrontEnd.stride
    assert AudioTokenizer.vocabulary_size == SpeechFrontEnd.vocabulary_size
