"""Exports of speech models, run where the package cannot be imported."""

import io
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attnvariants as kav
from keras_attnvariants.data import AudioTokenizer
from keras_attnvariants.serving import Client
from keras_attnvariants.serving import SavedTranslator
from keras_attnvariants.serving import Status
from keras_attnvariants.serving import export
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.recordings import read_wav
from keras_attnvariants.serving.translator import MISSING
from tests.data import recordings
from tests.data.recordings import tone
from tests.serving.service import service_of
from tests.serving.tools import ServingError

SECONDS = (0.5, 1.0, 0.73, 0.0)


@pytest.fixture(scope="module")
def speech():
    keras.utils.set_random_seed(2)
    model, subwords = recordings.toy_model(sharpness=3)
    return model, AudioTokenizer(subwords)


@pytest.fixture(scope="module")
def path(speech, tmp_path_factory):
    return export(*speech, tmp_path_factory.mktemp("exported"), max_batch=4)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pairs = enumerate(SECONDS)
    return [str(recordings.write(folder / f"{i}.wav", tone(s))) for i, s in pairs]


def batch(signals):
    lengths = [len(signal) for signal in signals]
    # Beyond the lengths may be anything.
    audio = np.full((len(signals), max(lengths)), 0.7, "float32")
    for row, signal in zip(audio, signals, strict=True):
        row[: len(signal)] = signal
    return {"audio": audio, "lengths": np.array(lengths, "int32")}


def test_answers_are_those_of_python(speech, path, server, files):
    verify(path)
    expected = kav.Translator(*speech, xla=False).translate(files)
    assert len({*expected}) == len(files)
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
    start = server.call(path, "serving_default", **batch([signal[: 64 * 640]]))
    assert found["truncated"].all() and not start["truncated"].any()
    assert list(found["translations"]) == list(start["translations"])


@pytest.mark.parametrize("length", [-1, 8001])
def test_wrong_lengths_have_a_status(path, server, length):
    given = batch([tone(0.5), tone(0.5)])
    given["lengths"][1] = length
    found = server.call(path, "serving_default", **given)
    assert list(found["status"]) == [int(Status.OK), int(Status.WRONG_LENGTH)]
    assert found["translations"][1] == ""


def wav(samples, rate=16_000, **options):
    """The bytes of a WAV file."""
    file = io.BytesIO()
    recordings.soundfile.write(file, samples, rate, **{"format": "WAV", **options})
    return file.getvalue()


def with_chunk(data, name, content):
    """A WAV file with one more chunk at its beginning."""
    chunk = name + len(content).to_bytes(4, "little") + content
    return data[:12] + chunk + b"\0" * (len(content) % 2) + data[12:]


def noise(seconds, channels=1):
    shape = (round(seconds * 16_000), channels)
    return np.random.default_rng(3).uniform(-1, 1, shape).astype("float32")


FILES = {
    "mono": wav(noise(0.5)),
    "stereo": wav(noise(0.7, 2)),
    "three": wav(noise(0.2, 3)),
    "long": wav(noise(3.0)),
    "extensible": wav(noise(0.4, 2), format="WAVEX"),
    "listed": with_chunk(wav(noise(0.3)), b"LIST", b"odd"),
    "late": with_chunk(wav(noise(0.3)), b"data"[::-1], bytes(40)),
    "trailing": wav(noise(0.3)) + b"LIST",
    "empty": wav(noise(0.0)),
    "silence": wav(0 * noise(0.5)),
    "clipped": wav(30 * noise(0.5)),
}


@pytest.mark.parametrize("name", FILES)
def test_a_wav_file_is_its_samples(path, server, name):
    samples, _ = recordings.soundfile.read(
        io.BytesIO(FILES[name]), dtype="float32", always_2d=True
    )
    given = server.call(path, "serving_default", **batch([samples.mean(axis=1)]))
    found = server.call(path, "translate_wav", wav=[FILES[name]])
    assert found.keys() == given.keys()
    for key, values in given.items():
        np.testing.assert_array_equal(found[key], values, key)
    assert found["status"] == [int(Status.OK)]
    assert bool(found["translations"][0]) == (name != "empty")
    assert found["truncated"] == [name == "long"]


@pytest.mark.parametrize("name", ["mono", "stereo", "three", "silence", "clipped"])
def test_samples_are_those_of_tensorflow(name):
    expected, rate = tf.audio.decode_wav(FILES[name])
    width = len(expected) + 7
    samples, count, status = read_wav(tf.constant(FILES[name]), width)
    assert (int(rate), int(count), int(status)) == (16_000, len(expected), 0)
    mean = np.mean(expected, axis=1)
    np.testing.assert_allclose(samples[: len(expected)], mean, atol=1e-7)
    assert samples.shape == (width,) and not np.any(samples[len(expected) :])


WRONG = {
    "nothing": b"",
    "letter": b"R",
    "text": b"Good morning.\n" * 50,
    "header": FILES["mono"][:20],
    "no samples": FILES["mono"][:36],
    "truncated": FILES["mono"][:-1],
    "half": FILES["mono"][:4000],
    "no form": FILES["mono"][:12] + FILES["mono"][36:],
    "other form": FILES["mono"][:20] + b"\x11" + FILES["mono"][21:],
    "streamed": FILES["mono"][:40] + b"\xff" * 4 + FILES["mono"][44:],
    "no channels": FILES["mono"][:22] + b"\0\0" + FILES["mono"][24:],
    "backwards": b"RIFX" + FILES["mono"][4:],
    "24 bits": wav(noise(0.1), subtype="PCM_24"),
    "floats": wav(noise(0.1), subtype="FLOAT"),
    "flac": wav(noise(0.1), format="FLAC"),
    "chunks": b"RIFF    WAVE" + b"LIST\0\0\0\0" * 10_000,
}


def test_wrong_files_have_a_status_and_do_not_fail_the_others(path, server):
    [expected] = server.call(path, "translate_wav", wav=[FILES["mono"]])["translations"]
    for name, data in WRONG.items():
        found = server.call(path, "translate_wav", wav=[data, FILES["mono"]])
        assert list(found["status"]) == [int(Status.WRONG_FILE), 0], name
        assert list(found["translations"]) == ["", expected]
        assert not found["truncated"].any()
    for rate in (8_000, 44_100, 16_000 + (1 << 16)):
        data = [wav(noise(0.5), rate), FILES["mono"]]
        found = server.call(path, "translate_wav", wav=data)
        assert list(found["status"]) == [int(Status.WRONG_RATE), 0]
        assert list(found["translations"]) == ["", expected]
    info = json.loads((path / "assets.extra" / "model_info.json").read_text())
    text = "it is not a WAV file of 16-bit PCM, or it ends early"
    assert info["status"]["6"] == text
    assert info["status"]["7"] == "its sample rate is not 16,000 Hz"


def test_no_bytes_crash_the_reader(path, server):
    rng = np.random.default_rng(0)
    data = []
    for _ in range(60):
        broken = bytearray(FILES["listed"][: rng.integers(1, 200)])
        for place in rng.integers(0, len(broken), 3):
            broken[place] = rng.integers(256)
        data.append(bytes(broken))
    for start in range(0, 60, 4):
        found = server.call(path, "translate_wav", wav=data[start : start + 4])
        assert set(found["status"]) <= {0, int(Status.WRONG_FILE), 7}


def test_shapes_of_files_are_checked(path, server):
    with pytest.raises(ServingError, match=r"`wav` may hold at most 4 .*\[?5\]?"):
        server.call(path, "translate_wav", wav=[b""] * 5)
    with pytest.raises(ServingError, match="`wav` must have the shape"):
        server.call(path, "translate_wav", wav=np.array([["RIFF"]]))


def test_every_signature_answers_as_python_does(speech, files, tmp_path):
    names = ["nbest", "align", "score", "translate_with", "sample"]
    saved = SavedTranslator(export(*speech, tmp_path, max_batch=2, signatures=names))
    here = kav.Translator(*speech, xla=False)
    assert saved.translate(files) == here.translate(files)
    for mine, theirs in zip(
        saved.nbest(files), here.translate_nbest(files), strict=True
    ):
        assert [each.text for each in mine] == [each.text for each in theirs]
    for found, text in zip(saved.align(files), here.translate(files), strict=True):
        assert found.text == text
        assert found.alignment.shape == (len(found.pieces), len(found.source_pieces))
    targets = ["one two", "three", "", "seven"]
    log_probs, counts = here.score(files, targets)
    for found, log_prob, count in zip(
        saved.score(files, targets), log_probs, counts, strict=True
    ):
        assert len(found.pieces) == count
        np.testing.assert_allclose(found.log_prob, log_prob, rtol=1e-4)
    begun = saved.translate_with(files, prefix="three", max_length=[20, 20, 9, 20])
    assert all(each.text.startswith("three") for each in begun[:3])
    assert len({each.text for each in begun}) > 1
    long = saved.translate_with(files[:1], min_length=20)
    assert len(speech[1].target.encode([long[0].text])[0]) >= 19
    drawn = [saved.sample(files, seed=[7] * 4) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert [x.text for x in saved.sample(files, seed=[8] * 4)] != [
        x.text for x in drawn[0]
    ]
    cold = saved.sample(files, temperature=0.0)
    greedy = kav.Translator(*speech, beam_size=1, xla=False).translate(files)
    assert [each.text for each in cold] == greedy


def test_the_score_of_a_wrong_length_is_that_of_nothing(speech, path, server):
    given = {**batch([tone(0.5), tone(0.5)]), "target": ["three", "three"]}
    given["lengths"][1] = 9_000
    found = server.call(path, "score", **given)
    assert found["log_probs"][0] > -1e3
    assert found["log_probs"][1] == np.float32(MISSING)


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int8-weights"])
def test_precisions(speech, files, tmp_path, precision):
    if precision == "int8" and not kav.backend.is_onednn_exact():
        pytest.skip("oneDNN multiplies integers exactly with VNNI only")
    saved = export(*speech, tmp_path, precision=precision, max_batch=4)
    verify(saved)
    found = SavedTranslator(saved)
    exact = kav.Translator(*speech, xla=False)
    targets = ["one two", "three", "four", "seven"]
    log_probs, _ = exact.score(files, targets)
    scores = [each.log_prob for each in found.score(files, targets)]
    np.testing.assert_allclose(scores, log_probs, rtol=0.1)
    assert found.info["precision"]["exact"] is False
    assert len(found.translate(files)) == 4


@pytest.fixture(scope="module")
def service(path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(path, folder / "1")
    with service_of(folder) as found:
        yield found


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_a_client_sends_recordings(speech, files, service, protocol, tmp_path):
    silence = recordings.write(tmp_path / "silence.flac", 0 * tone(1.0, 8_000), 8_000)
    stereo = np.stack([tone(0.5, 44_100), tone(0.3)[0] + tone(0.5, 44_100)], axis=1)
    others = [str(silence), str(recordings.write(tmp_path / "a.wav", stereo, 44_100))]
    here = kav.Translator(*speech, xla=False)
    paths = [*files, *others] * 3
    with Client(service.address(protocol), "en-de") as client:
        assert not client.reads_text
        assert client.translate(paths) == here.translate(paths)
        [best, *_] = client.nbest(others)
        assert [each.text for each in best] == [
            each.text for each in here.translate_nbest(others)[0]
        ]
        log_probs, _ = here.score(files, ["three"] * 4)
        scores = [each.log_prob for each in client.score(files, ["three"] * 4)]
        np.testing.assert_allclose(scores, log_probs, rtol=1e-4)
        data = {"wav": [b"", FILES["mono"]]}
        assert list(client.predict(data, "translate_wav")["status"]) == [6, 0]


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_requests_of_recordings_are_small_enough(speech, service, protocol, tmp_path):
    path = str(recordings.write(tmp_path / "a.wav", noise(2.0)))
    address, limit = service.address(protocol), 1 << 19
    with Client(address, "en-de", max_message_bytes=limit) as client:
        assert client.translate([path] * 12) == client.translate([path]) * 12
        long = str(recordings.write(tmp_path / "long.wav", noise(60.0)))
        cut = str(recordings.write(tmp_path / "cut.wav", noise(60.0)[: 64 * 640]))
        with pytest.warns(UserWarning, match="longer than the model reads"):
            [found] = client.translate([long])
        assert [found] == client.translate([cut])
