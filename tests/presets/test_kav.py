"""Our own presets: small enough for a CPU, marked as ours."""

import keras
import pytest

import keras_attnvariants.training  # noqa: F401, for its schedules
from keras_attnvariants import presets
from keras_attnvariants.presets.kav import NORMALIZATION

OURS = [name for name in presets.names() if name.startswith("kav/")]


def test_the_four_main_variants_on_two_corpora():
    assert len(OURS) == 8
    assert "kav/hc-sa/multi30k" in OURS


@pytest.mark.parametrize("name", OURS)
def test_ours_claim_no_published_figures_and_are_small(name):
    preset = presets.get(name)
    assert preset.published.bleu == {}
    assert preset.parameters < 10e6
    assert preset.options["normalization"] == NORMALIZATION
    assert preset.training.label_smoothing == 0.1


def test_the_tiny_shape_of_multi30k():
    config = presets.get("kav/base/multi30k").config
    shape = ("num_layers", "hidden_dim", "intermediate_dim", "vocabulary_size")
    assert [config[name] for name in shape] == [4, 128, 256, 2000]


@pytest.mark.parametrize("name", OURS)
def test_the_learning_rate_reaches_its_peak_and_falls(name):
    training = presets.get(name).training
    schedule = keras.optimizers.schedules.deserialize(training.schedule)
    rates = [float(schedule(step)) for step in (0, 300, 800, training.steps)]
    assert max(rates) > 10 * rates[0]
    assert rates[-1] < max(rates) / 3
