"""Requests and replies of the translator's methods, without a model."""

import math
import subprocess
import sys

import numpy as np
import pytest

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.translator import MISSING
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.serving.translator import Status

OPTIONS = {
    "prefix": "string",
    "min_length": "int32",
    "max_length": "int32",
    "length_penalty": "float32",
    "block_unknown": "bool",
    "no_repeat_ngram": "int32",
    "temperature": "float32",
    "top_k": "int32",
    "top_p": "float32",
    "seed": "int32",
}


class Recorder(BaseTranslator):
    """Records its requests, and returns given replies."""

    def __init__(self, **reply):
        self.reply = {name: np.array(values) for name, values in reply.items()}
        self.asked = []

    def _signature(self, name):
        specs = {key: TensorSpec(dtype, (None,)) for key, dtype in OPTIONS.items()}
        return Signature(name, specs, dict.fromkeys(self.reply))

    def predict(self, inputs, signature="serving_default", outputs=None):
        self.asked.append((signature, inputs, outputs))
        return self.reply


def test_nothing_is_asked_for_no_text():
    translator = Recorder()
    assert translator.translate([]) == []
    assert translator.asked == []


def test_a_translation_is_one_output_of_the_default():
    translator = Recorder(translations=["x", "y"], truncated=[False, False])
    assert translator.translate(("a", "b")) == ["x", "y"]
    outputs = ["translations", "truncated"]
    expected = ("serving_default", {"text": ["a", "b"]}, outputs)
    assert translator.asked == [expected]


def test_texts_that_are_cut_give_a_warning():
    translator = Recorder(translations=["x", "y"], truncated=[False, True])
    with pytest.warns(UserWarning, match="longer than the model reads"):
        assert translator.translate(["a", "b"]) == ["x", "y"]


@pytest.mark.parametrize("method", ["translate", "nbest", "align", "sample"])
def test_a_lone_string_is_refused(method):
    with pytest.raises(TypeError, match="`texts` must be a list"):
        getattr(Recorder(), method)("text")


def test_what_was_not_found_is_left_out():
    assert MISSING == IMPOSSIBLE
    scores = np.array([[-1.0, MISSING], [-2.0, -3.0]], "float32")
    translator = Recorder(
        translations=[["x", ""], ["y", "z"]],
        scores=scores,
        truncated=[False, True],
        status=[0, 0],
    )
    first, second = translator.nbest(["a", "b"])
    assert [each.text for each in first] == ["x"]
    assert [(each.text, each.score) for each in second] == [("y", -2), ("z", -3)]
    assert second[0].truncated and not first[0].truncated


def reply(count, status=Status.OK):
    return {
        "translations": ["x"] * count,
        "scores": [-1.0] * count,
        "truncated": [False] * count,
        "status": [Status.OK] * (count - 1) + [status],
    }


def test_options_are_columns():
    translator = Recorder(**reply(2))
    translator.translate_with(["a", "b"], prefix="p", min_length=[None, 3])
    [(signature, inputs, _)] = translator.asked
    assert signature == "translate_with" and inputs["text"] == ["a", "b"]
    assert inputs["prefix"] == ["p", "p"] and inputs["min_length"] == [-1, 3]
    assert all(map(math.isnan, inputs["length_penalty"]))
    translator.sample(["a", "b"], top_k=4, seed=[5, 6])
    signature, inputs, _ = translator.asked[-1]
    assert signature == "sample" and inputs["top_k"] == [4, 4]
    assert inputs["seed"] == [5, 6]


def test_a_wrong_option_names_its_text():
    translator = Recorder(**reply(3, Status.WRONG_OPTION))
    with pytest.raises(ValueError, match="position 2 .*'max_length': 1"):
        translator.translate_with(["a", "b", "c"], max_length=[9, 9, 1])


@pytest.mark.parametrize("module", ["translator", "client", "calls", "folders"])
def test_each_module_can_be_the_first_and_needs_no_tensorflow(module):
    code = (
        f"import sys, keras_attnvariants.serving.{module}\n"
        "assert not {'tensorflow', 'keras'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
