"""Schedules against the printed formulas."""

import keras
import numpy as np
import pytest

from keras_attnvariants.training.schedules import LinearDecay
from keras_attnvariants.training.schedules import NoamSchedule


@pytest.mark.parametrize("step", [0, 10, 3999, 4000, 100_000])
def test_noam_formula(step):
    s = step + 1
    expected = 2.0 * 288**-0.5 * min(s**-0.5, s * 4000**-1.5)
    schedule = NoamSchedule(288, warmup_steps=4000, scale=2.0)
    np.testing.assert_allclose(schedule(step), expected, rtol=1e-5)


def test_noam_from_peak_peaks_there():
    rates = [float(NoamSchedule.from_peak(7e-4, 50)(step)) for step in range(200)]
    assert np.argmax(rates) == 49
    np.testing.assert_allclose(max(rates), 7e-4, rtol=1e-5)


def test_linear_decay_ends_and_stays():
    schedule = LinearDecay(3e-4, 1e-5, steps=100)
    np.testing.assert_allclose(schedule(0), 3e-4, rtol=1e-6)
    np.testing.assert_allclose(schedule(25), 3e-4 - 25 * 2.9e-6, rtol=1e-5)
    np.testing.assert_allclose(schedule(100), 1e-5, rtol=1e-4)
    np.testing.assert_allclose(schedule(5000), 1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "schedule", [NoamSchedule(8, 5, 0.5), LinearDecay(1.0, 0.1, 7)]
)
def test_schedules_survive_serialization_inside_an_optimizer(schedule):
    optimizer = keras.optimizers.Adam(schedule)
    config = keras.saving.serialize_keras_object(optimizer)
    copy = keras.saving.deserialize_keras_object(config)
    assert copy._learning_rate.get_config() == schedule.get_config()


@pytest.mark.parametrize(
    "build",
    [
        lambda: NoamSchedule(0),
        lambda: NoamSchedule(8, warmup_steps=-1),
        lambda: NoamSchedule.from_peak(0.0),
        lambda: LinearDecay(1e-3, 1e-5, steps=0),
    ],
)
def test_arguments_must_be_positive(build):
    with pytest.raises(ValueError, match=r"must be a positive number\. Received: "):
        build()
