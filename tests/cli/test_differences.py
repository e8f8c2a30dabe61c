"""A run that cannot be resumed: the options of `kav train` with both values."""

import inspect
from pathlib import Path

import pytest

from keras_attnvariants.cli.differences import OPTIONS
from keras_attnvariants.cli.differences import SAME_NAMES
from keras_attnvariants.cli.differences import named_by_options
from keras_attnvariants.cli.train import train
from keras_attnvariants.training import DifferentSettingsError
from keras_attnvariants.training.settings import Difference


def test_refusals_name_options():
    differences = [
        Difference("num_heads", 4, 3),
        Difference("batch_tokens", 4096, 2048),
        Difference("epsilon", 1e-9, 1e-8),
    ]
    expected = (
        "Received: --heads 3 instead of 4, --batch-tokens 2048 instead of 4096, "
        "`epsilon` 1e-08 instead of 1e-09"
    )
    with pytest.raises(ValueError, match=expected), named_by_options():
        raise DifferentSettingsError(Path("runs/first"), differences)


def test_options_that_are_named_exist():
    names = [option.split(",")[0][2:] for option in OPTIONS.values()]
    names += SAME_NAMES
    assert {n.replace("-", "_") for n in names} <= inspect.signature(
        train
    ).parameters.keys()
