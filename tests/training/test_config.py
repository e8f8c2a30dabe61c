"""Settings survive JSON, and a different run is told by its keys."""

import json

import keras
import pytest

from keras_attnvariants.training import LinearDecay
from keras_attnvariants.training import NoamSchedule
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training.config import describe_model
from keras_attnvariants.training.config import differing_keys
from tests.training.toy import toy_model


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


def test_differing_keys_are_dotted():
    saved = {"a": 1, "b": {"c": [1, 2], "d": 3}, "e": 4}
    given = {"a": 1, "b": {"c": [1, 5], "d": 3}, "f": 4}
    assert differing_keys(saved, given) == ["b.c", "e", "f"]
    assert differing_keys(saved, saved) == []


def test_model_is_described_by_what_it_is_not_by_its_names():
    assert describe_model(toy_model()) == describe_model(toy_model())
    other = describe_model(toy_model(dropout=0.1))
    assert differing_keys(describe_model(toy_model()), other) == ["config.dropout"]

    def functional(units):
        inputs = keras.Input((3,))
        return keras.Model(inputs, keras.layers.Dense(units)(inputs))

    assert describe_model(functional(2)) == describe_model(functional(2))
    assert describe_model(functional(2)) != describe_model(functional(3))
