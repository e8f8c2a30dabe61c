"""Exports of speech models, run where the package cannot be imported."""

import numpy as np
import pytest

import keras_attnvariants as kav
from keras_attnvariants.data import AudioTokenizer
from keras_attnvariants.serving import Status
from keras_attnvariants.serving import export
from keras_attnvariants.serving import verify
from tests.data import recordings
from tests.data.recordings import tone

SECONDS = (0.5, 1.0, 0.73, 0.0)


@pytest.fixture(scope="module")
def speech():
    model, subwords = recordings.toy_model()
    return model, AudioTokenizer(subwords)


@pytest.fixture(scope="module")
def path(speech, tmp_path_factory):
    return export(*speech, tmp_path_factory.mktemp("exported"), max_batch=4)


def batch(signals):
    lengths = [len(signal) for signal in signals]
    # Beyond the lengths may be anything.
    audio = np.full((len(signals), max(lengths)), 0.7, "float32")
    for row, signal in zip(audio, signals, strict=True):
        row[: len(signal)] = signal
    return {"audio": audio, "lengths": np.array(lengths, "int32")}


def test_answers_are_those_of_python(speech, path, server, tmp_path):
    verify(path)
    files = [
        str(recordings.write(tmp_path / f"{i}.wav", tone(seconds)))
        for i, seconds in enumerate(SECONDS)
    ]
    expected = kav.Translator(*speech, xla=False).translate(files)
    assert any(expected)
    signals = [kav.data.audio.samples_of(file) for file in files]
    together = server.call(path, "serving_default", **batch(signals))
    assert list(together["translations"]) == expected
    assert not together["truncated"].any()
    alone = server.call(path, "serving_default", **batch(signals[:1]))
    assert alone["translations"][0] == expected[0]
    several = server.call(path, "nbest", **batch(signals))
    assert list(several["translations"][:, 0]) == expected
    aligned = server.call(path, "align", **batch(signals))
    assert list(aligned["translations"]) == expected
    assert aligned["alignments"].shape[2] == 25
    assert list(aligned["source_pieces"][0][:3]) == ["0.00", "0.04", "0.08"]


def test_a_recording_that_is_too_long_is_cut(path, server):
    signal = tone(10.0).astype("float32")
    found = server.call(path, "serving_default", **batch([signal]))
    start = server.call(path, "serving_default", **batch([signal[: 63 * 640]]))
    assert found["truncated"].all() and not start["truncated"].any()
    assert list(found["translations"]) == list(start["translations"])


@pytest.mark.parametrize("length", [-1, 8001])
def test_wrong_lengths_have_a_status(path, server, length):
    given = batch([tone(0.5), tone(0.5)])
    given["lengths"][1] = length
    found = server.call(path, "serving_default", **given)
    assert list(found["status"]) == [int(Status.OK), int(Status.WRONG_LENGTH)]
    assert found["translations"][1] == ""
