import base64
import zlib

import numpy as np
import pytest

from keras_attnvariants.experiments.page.rendering import browsable
from keras_attnvariants.experiments.page.rendering import packed
from keras_attnvariants.experiments.page.rendering import quantized
from tests.experiments import made_up


def test_a_weight_is_stored_to_within_half_a_step():
    weights = np.random.default_rng(1).random((3, 5, 7))
    stored = quantized(weights)
    assert stored.dtype == np.uint8
    assert np.abs(stored / 255 - weights).max() <= 0.5 / 255 + 1e-9


def test_values_beyond_weights_are_stored_as_the_nearest():
    stored = quantized([0.0, 1.0, 1.0000001, -1e-9, float("nan")])
    assert stored.tolist() == [0, 255, 255, 0, 0]


def test_packed_bytes_are_those_of_the_blocks_in_turn():
    text = packed([np.array([[1, 2]], "uint8"), np.array([3], "uint8")])
    assert zlib.decompress(base64.b64decode(text)) == b"\1\2\3"


def unpacked(sentence: dict) -> list[np.ndarray]:
    data = np.frombuffer(zlib.decompress(base64.b64decode(sentence["data"])), "uint8")
    shapes = [
        (
            layer["heads"],
            len(sentence["axes"][layer["rows"]]),
            len(sentence["axes"][layer["columns"]]),
        )
        for layer in sentence["layers"]
    ]
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    assert ends[-1] == len(data)
    blocks = np.split(data, ends[:-1])
    return [block.reshape(s) / 255 for block, s in zip(blocks, shapes, strict=True)]


def test_the_browser_has_all_weights_of_all_systems():
    result = made_up.comparison()
    systems = browsable(result)
    assert [system["name"] for system in systems] == ["base", "hc-sa", "sh-x"]
    for system in systems:
        own = [layer for layer in result.attention if layer.system == system["name"]]
        found = [
            (sentence["axes"], layer, weights)
            for sentence in system["sentences"]
            for layer, weights in zip(
                sentence["layers"], unpacked(sentence), strict=True
            )
        ]
        assert len(own) == len(found)
        for layer, (axes, described, weights) in zip(own, found, strict=True):
            assert weights == pytest.approx(np.array(layer.heads), abs=0.002)
            assert axes[described["rows"]] == list(layer.queries)
            assert axes[described["columns"]] == list(layer.keys)
            assert described["quadrant"] == layer.is_quadrant
    assert systems[0]["sentences"][0]["text"] == made_up.SOURCES[0]


def test_fewer_sentences():
    [system, *_] = browsable(made_up.comparison(), most=1)
    assert [sentence["text"] for sentence in system["sentences"]] == [
        made_up.SOURCES[0]
    ]
