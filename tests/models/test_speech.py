"""The front end of speech recognition, against NumPy and librosa."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.models import SpeechFrontEnd
from keras_attnvariants.models import speech
from tests.models import tiny
from tests.reference import speech as reference

# Many windows, a few, less than one window, one sample.
LENGTHS = 9000, 2000, 300, 1


def front_end(**options):
    layer = SpeechFrontEnd(hidden_dim=6, seed=1, **options)
    layer.build()
    tiny.randomize(layer)
    return layer


def arrays(layer):
    return [tiny.to_numpy(weight) for weight in layer.trainable_weights]


def test_samples_and_ids_are_each_others_inverse():
    ids = np.arange(1, 65_536)
    samples = tiny.to_numpy(speech.ids_to_samples(ids))
    assert samples.dtype == "float32"
    assert samples.min() == -samples.max() == -32_767 / 32_768
    np.testing.assert_array_equal(speech.samples_to_ids(samples), ids)


def test_loud_samples_are_clipped_and_padding_is_silent():
    ids = speech.samples_to_ids(np.array([-3.0, -1.0, 0.0, 1.0, 3.0]))
    assert np.asarray(ids).tolist() == [1, 1, 32_768, 65_535, 65_535]
    assert np.asarray(speech.ids_to_samples(np.array([0, 32_768]))).tolist() == [0, 0]


def test_features_are_those_of_the_reference():
    ids = reference.batch_of(*LENGTHS)
    found = tiny.to_numpy(front_end().features(ids))
    assert found.shape == (4, 57, 80)
    for row, length in enumerate(LENGTHS):
        expected = reference.normalized(reference.log_mels(ids[row, :length]))
        np.testing.assert_allclose(found[row, : len(expected)], expected, atol=1e-4)
        assert not found[row, len(expected) :].any()


@pytest.mark.parametrize("seed", range(3))
def test_features_are_those_of_librosa(seed):
    librosa = pytest.importorskip("librosa")
    ids = reference.recording(32_000, seed)
    found = front_end().features(ids[None])
    samples = np.pad((ids - 32_768) / 32_768, (0, 240))
    options = {"n_fft": 400, "hop_length": 160, "center": False, "n_mels": 80}
    energies = librosa.feature.melspectrogram(
        y=samples, sr=16_000, window="hann", norm=None, **options
    )
    expected = reference.normalized(np.log(np.maximum(energies, 1e-6)).T)
    np.testing.assert_allclose(found[0], expected, atol=1e-4)


@pytest.mark.parametrize("kernel_size", [3, 4, 5])
def test_outputs_are_those_of_the_reference(kernel_size):
    layer = front_end(kernel_size=kernel_size)
    ids = reference.batch_of(*LENGTHS)
    found = tiny.to_numpy(layer(ids))
    assert found.shape == (4, 15, 6)
    for row, length in enumerate(LENGTHS):
        expected = reference.front_end(ids[row, :length], arrays(layer))
        np.testing.assert_allclose(found[row, : len(expected)], expected, atol=1e-4)
        assert not found[row, len(expected) :].any()
        mask = tiny.to_numpy(layer.mask(ids))[row]
        assert mask.tolist() == [place < len(expected) for place in range(15)]


def test_padding_and_compilation_change_nothing():
    layer = front_end()
    ids = reference.batch_of(*LENGTHS, width=12_800)
    whole = tiny.to_numpy(layer(ids))
    for xla in (False, True):
        compiled = backend.jit(layer, xla=xla)(ops.convert_to_tensor(ids))
        np.testing.assert_allclose(whole, compiled, atol=1e-4)
    for row, length in enumerate(LENGTHS):
        alone = tiny.to_numpy(layer(ids[row : row + 1, :length]))[0]
        np.testing.assert_allclose(whole[row, : len(alone)], alone, atol=5e-5)


def test_half_precision_begins_after_the_features():
    layer = front_end(dtype="mixed_bfloat16")
    ids = reference.batch_of(*LENGTHS)
    assert layer(ids).dtype == ops.zeros((), "bfloat16").dtype
    whole = front_end()
    np.testing.assert_array_equal(layer.features(ids), whole.features(ids))
    halves = tiny.to_numpy(ops.cast(layer(ids), "float32"))
    np.testing.assert_allclose(halves, whole(ids), atol=0.1)


def test_silence_gives_zeros():
    layer = front_end()
    for ids in (np.full((1, 4000), 32_768), np.zeros((1, 4000))):
        found = tiny.to_numpy(layer.features(ids.astype("int32")))
        assert found.shape == (1, -(-ids.shape[1] // 160), 80)
        assert not found.any()
        assert np.isfinite(layer(ids.astype("int32"))).all()


def test_masks_are_of_the_size_that_is_asked_for():
    layer = front_end(longest_time_mask=4, widest_mel_mask=10, num_mel_masks=3)
    ids = reference.batch_of(16_000, 4000)
    is_real = ops.not_equal(ids[:, ::160], 0)
    ones = ops.ones((2, 100, 80))
    seen = set()
    for _ in range(30):
        hidden = tiny.to_numpy(layer.masked(ones, is_real)) == 0
        for row, frames in enumerate((100, 25)):
            times, mels = hidden[row].all(axis=1), hidden[row].all(axis=0)
            assert times.sum() <= 2 * 4
            assert not times[frames:].any()
            assert mels.sum() <= 3 * 10
            assert (hidden[row] == times[:, None] | mels).all()
            seen.add((times.sum(), mels.sum()))
    assert max(time for time, _ in seen) == 8
    assert min(seen) < (3, 10) < max(seen)


def test_masks_are_for_training_and_follow_the_seed():
    ids = reference.batch_of(*LENGTHS)
    plain = tiny.to_numpy(front_end()(ids))
    first, second = (tiny.to_numpy(front_end()(ids, training=True)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - plain).max() > 0.1
    none = front_end(num_time_masks=0, num_mel_masks=0)
    np.testing.assert_array_equal(none(ids, training=True), plain)


def test_a_layer_is_built_again_from_its_configuration():
    options = {"kernel_size": 3, "num_time_masks": 0, "widest_mel_mask": 9}
    layer = front_end(**options, longest_time_mask=7, num_mel_masks=1)
    config = layer.get_config()
    assert config["longest_time_mask"] == 7
    again = SpeechFrontEnd.from_config(config)
    assert again.get_config() == config
    assert options.items() <= config.items()


@pytest.mark.parametrize("name", ["num_time_masks", "longest_time_mask", "hidden_dim"])
def test_sizes_out_of_range_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must be .*Received: -1"):
        SpeechFrontEnd(**{"hidden_dim": 6, name: -1})


def test_a_file_of_keras_holds_the_layer(tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    model = keras.Model(inputs, front_end()(inputs))
    ids = reference.batch_of(*LENGTHS)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(model(ids), again(ids))
