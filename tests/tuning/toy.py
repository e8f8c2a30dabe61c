"""A preset, a space and a search small enough to be run many times in a test."""

import dataclasses
import functools

from keras_attnvariants import presets
from keras_attnvariants import tuning

SIZES = {
    "vocabulary_size": 50,
    "num_layers": 1,
    "hidden_dim": 8,
    "intermediate_dim": 8,
    "num_heads": 2,
    "dropout": 0.1,
}
SPACE = tuning.SearchSpace(
    training={"learning_rate": tuning.Range(1e-3, 1e-1, log=True)},
    attention={"encoder": ["DotProductAttention", "HardCodedAttention"]},
)


def toy_preset(name="kav/base/bible", **sizes):
    """A preset in a size that trains in a second."""
    preset = presets.get(name)
    options = {**preset.options, **SIZES, **sizes}
    training = dataclasses.replace(preset.training, batch_tokens=512)
    return dataclasses.replace(preset, options=options, training=training)


def bare_preset(**sizes):
    """One with attention of encoder and cross only: half as much to compile."""
    preset = toy_preset(**sizes)
    architecture = functools.partial(without_most, preset.architecture)
    return dataclasses.replace(preset, architecture=architecture)


def without_most(architecture, **options):
    arguments = architecture(**options)
    return {**arguments, "decoder_attention": None, "feed_forward": False}


def toy_search(corpus, folder, space=SPACE, **options):
    """A search of three trials of six updates."""
    defaults = {
        "budget": tuning.Budget(updates=6, validations=2),
        "max_trials": 3,
        "precision": "float32",
        "settings": {"save_every": 1, "average_last": 2},
    }
    return tuning.search(
        bare_preset(), corpus, space, folder, **{**defaults, **options}
    )
