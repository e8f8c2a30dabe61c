"""`--callback`: from an import path to callbacks, or one clear line."""

import sys

import keras
import pytest

from keras_attnvariants.cli.callbacks import load_callbacks

MODULE = """
import keras
from keras.callbacks import Callback

def two():
    return [Callback(), keras.callbacks.TerminateOnNaN()]

def none():
    return 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the working directory."""
    name = f"callbacks_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    return name


def test_functions_and_classes_make_callbacks(module):
    callbacks = load_callbacks([f"{module}:two", "keras.callbacks:TerminateOnNaN"])
    kinds = [type(callback).__name__ for callback in callbacks]
    assert kinds == ["Callback", "TerminateOnNaN", "TerminateOnNaN"]
    assert all(isinstance(c, keras.callbacks.Callback) for c in callbacks)
    assert load_callbacks([]) == []


@pytest.mark.parametrize(
    ("factory", "problem"),
    [
        ("two", "must be `package.module:function`"),
        ("no_such_module:two", "No module named 'no_such_module'"),
        ("{module}:three", "has no attribute 'three'"),
        ("{module}:none", "which gives 7"),
    ],
)
def test_what_makes_no_callbacks(module, factory, problem):
    factory = factory.format(module=module)
    with pytest.raises(ValueError, match=f"`--callback`.*{problem}") as caught:
        load_callbacks([factory])
    assert factory in str(caught.value) and "\n" not in str(caught.value)
