"""Settings survive JSON, and a different run is told by its keys."""

import json

import pytest

from keras_attnvariants.training import LinearDecay
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TrainingConfig


@pytest.mark.parametrize("rate", [1e-3, NoamSchedule(8), LinearDecay(1e-3, 1e-5, 10)])
def test_round_trip_through_json(rate):
    config = TrainingConfig(10, rate, clipnorm=1.0, data={"languages": ["de", "en"]})
    text = json.dumps(config.to_dict())
    copy = TrainingConfig.from_dict(json.loads(text))
    assert copy.to_dict() == config.to_dict()
    assert type(copy.learning_rate) is type(rate)


def test_optimizer_has_the_settings():
    optimizer = TrainingConfig(10, 0.5, clipnorm=2.0).optimizer()
    config = optimizer.get_config()
    assert (config["beta_1"], config["beta_2"], config["epsilon"]) == (0.9, 0.98, 1e-9)
    assert config["global_clipnorm"] == 2.0
    assert float(optimizer.learning_rate) == 0.5


@pytest.mark.parametrize(
    "field", ["steps", "validate_every", "save_every", "average_last", "patience"]
)
def test_counts_must_be_positive(field):
    for value in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=rf"`{field}` must be a positive integer"):
            TrainingConfig(**{"steps": 1, "learning_rate": 1.0, field: value})


def test_unknown_setting_names_the_nearest():
    values = TrainingConfig(1, 1.0).to_dict() | {"label_smothing": 0.1}
    with pytest.raises(ValueError, match=r"mean 'label_smoothing'\? Received: 'label"):
        TrainingConfig.from_dict(values)


@pytest.mark.parametrize("norm", [0, -1.0, "1"])
def test_clipnorm_must_be_positive(norm):
    with pytest.raises(ValueError, match=r"`clipnorm` must be a positive number"):
        TrainingConfig(1, 1.0, clipnorm=norm)
