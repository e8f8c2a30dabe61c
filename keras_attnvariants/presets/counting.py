"""Counting the parameters of a configuration by building it, without its arrays.

A `Transformer` is the sum of its parts. It is built once without sub-layers, and once
with each distinct sub-layer; the difference is the size of the sub-layer and its
residual connection. No variant needs a formula, and counting a deep model takes no
longer than counting a shallow one.
"""

import json
import random
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras

from keras_attnvariants.backend.private import forget_variables_without_values
from keras_attnvariants.models import Transformer
from keras_attnvariants.models.templates import per_layer
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer

# One empty block in the encoder and one in the decoder.
WITHOUT_SUBLAYERS = {
    "num_layers": 1,
    "num_decoder_layers": 1,
    "encoder_attention": None,
    "decoder_attention": None,
    "cross_attention": None,
    "feed_forward": False,
}


# Counts by model class, its arguments, and the class of a layer in them.
_counts: dict[tuple[type[keras.Model], str, type | None], int] = {}


def count_parameters(model: type[keras.Model], config: Mapping[str, Any]) -> int:
    """Counts the parameters of a model without allocating arrays.

    Args:
        model: class of the model.
        config: arguments of `model`, in the form of its `get_config`; missing arguments
            have their defaults.

    Raises:
        ValueError: the class of a layer in `config` is unknown, or `model` does not
            accept an argument or its value.

    Example:

    >>> from keras_attnvariants.models import Seq2SeqLSTM
    >>> config = {"vocabulary_size": 10, "embedding_dim": 2, "hidden_dim": 4}
    >>> count_parameters(Seq2SeqLSTM, config) == Seq2SeqLSTM(**config).count_params()
    True
    """
    if not issubclass(model, Transformer):
        return count_built(model, config)
    bare = {**config, **WITHOUT_SUBLAYERS}
    total = count_bare = count_built(model, bare)
    for argument, entry in sublayers(config):
        cls = None
        if isinstance(entry, dict):
            # A class that was registered again under the same name is another layer.
            cls = keras.saving.get_registered_object(entry.get("class_name"))
        added = count_built(model, {**bare, argument: entry}, cls) - count_bare
        # A feed-forward sub-layer is added to the encoder and to the decoder.
        total += added // 2 if argument == "feed_forward" else added
    return total


def sublayers(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The sub-layers of all blocks of a `Transformer`.

    Yields:
        An argument of `Transformer`, and its value for one block.
    """
    encoder = check_integer("num_layers", config["num_layers"])
    name = "num_decoder_layers"
    decoder = check_optional_integer(name, config.get(name)) or encoder
    for argument, num_layers in (
        ("encoder_attention", encoder),
        ("decoder_attention", decoder),
        ("cross_attention", decoder),
        ("feed_forward", encoder),
        ("feed_forward", decoder),
    ):
        value = {"feed_forward": True, **config}[argument]
        for entry in filter(None, per_layer(argument, value, num_layers)):
            yield argument, entry


def count_built(
    model: type[keras.Model], config: Mapping[str, Any], layer: type | None = None
) -> int:
    """Number of parameters of a model, built without arrays; results are cached.

    Args:
        model: class of the model.
        config: its arguments, in the form of its `get_config`.
        layer: a class that the name of a layer in `config` stands for.
    """
    text = json.dumps(config, sort_keys=True)
    key = (model, text, layer)
    if key not in _counts:
        built = without_arrays(lambda: model.from_config(json.loads(text)))
        _counts[key] = built.count_params()
    return _counts[key]


def without_arrays(build: Callable[[], keras.Model]) -> keras.Model:
    """A model whose weights have names and shapes, but no values.

    Args:
        build: builds the model.
    """
    # The seeds that layers draw would change the seeds of whatever is built next.
    state = random.getstate()
    try:
        with keras.StatelessScope(initialize_variables=False):
            return build()
    finally:
        random.setstate(state)
        forget_variables_without_values()
