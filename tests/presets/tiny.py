"""Tiny models of every preset, each built once however many presets share it."""

import functools
import json

import keras

from keras_attnvariants import presets
from keras_attnvariants.presets.counting import without_arrays

SIZES = {
    "vocabulary_size": 11,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "hidden_dim": 48,  # for 1, 2, 3, 4, 8 and 16 heads
    "intermediate_dim": 10,
    "max_length": 16,
    "source_vocabulary_size": None,
}

# Presets that stand for all in the fast tests.
ONE_OF_EACH_PAPER = (
    "kav/hc-sa/multi30k",
    "you2020/index/iwslt16-en-de",
    "rosendahl2021/accumulated-weights/wmt16-ro-en",
    "nguyen2018/interleaved-query-k/wmt16-en-de",
    "cs287/soundwave/iwslt16-de-en",
    "loem2022/neural-ngram-growing/wmt16-en-de",
)

# Their changes to single layers need the published number of layers.
NEED_ALL_LAYERS = ("lowest-", "-layers")


def sizes(name: str) -> dict:
    """Tiny values for the options of a preset."""
    options = presets.get(name).options
    fewer = not any(part in name for part in NEED_ALL_LAYERS)
    return {
        key: value
        for key, value in SIZES.items()
        if key in options and (fewer or key != "num_layers")
    }


def config(name: str) -> dict:
    """The arguments of a tiny model."""
    preset = presets.get(name)
    return preset.architecture(**{**preset.options, **sizes(name)})


def model(name: str) -> keras.Model:
    """A tiny model of a preset, without values; tests must not change it."""
    text = json.dumps({**config(name), "max_length": SIZES["max_length"]})
    return built(presets.get(name).model, text)


@functools.cache
def built(cls: type, text: str) -> keras.Model:
    """The model of a configuration in JSON."""
    return without_arrays(lambda: cls.from_config(json.loads(text)))


def without_names(value):
    """A configuration without the names that Keras numbers from build to build."""
    if isinstance(value, dict):
        return {k: without_names(v) for k, v in value.items() if k != "name"}
    if isinstance(value, list | tuple):
        return [without_names(entry) for entry in value]
    return value
