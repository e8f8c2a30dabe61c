"""The models of the package are step models."""

import inspect

import pytest

from keras_attnvariants.decoding import StepModel
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer


@pytest.mark.parametrize("model", [Seq2SeqLSTM, Transformer])
@pytest.mark.parametrize("method", ["encode", "initial_state", "step"])
def test_models_take_the_arguments_of_the_protocol(model, method):
    asked = inspect.signature(getattr(StepModel, method)).parameters
    taken = inspect.signature(getattr(model, method)).parameters
    assert list(taken)[: len(asked)] == list(asked)
    assert all(
        parameter.default is not inspect.Parameter.empty
        for parameter in list(taken.values())[len(asked) :]
    )


def test_models_have_the_attributes_of_the_protocol():
    model = Seq2SeqLSTM(vocabulary_size=9, embedding_dim=2, hidden_dim=2)
    for name in StepModel.__annotations__:
        assert isinstance(getattr(model, name), int), name
