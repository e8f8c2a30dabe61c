"""Counting the parameters of a configuration without making their arrays.

One formula per family of attention, `attention_parameters`, and one for all the rest
of a Transformer. A family of your own is added with
`@attention_parameters.register`.
"""

import inspect
import json
from collections.abc import Mapping
from functools import lru_cache
from functools import singledispatch
from typing import Any

from keras_attnvariants.attention import ConcatenatedNgram
from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import HardCodedCrossAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.attention import RecurrentCrossAttention
from keras_attnvariants.attention import recurrences
from keras_attnvariants.models import ConcatenatedPositions
from keras_attnvariants.models import Seq2SeqLSTM
from keras_attnvariants.models import Transformer
from keras_attnvariants.models.templates import deserialize
from keras_attnvariants.models.templates import per_layer


@singledispatch
def attention_parameters(layer, width: int) -> int:
    """Number of parameters of an attention layer, which need not be built.

    With width `d` and without biases: `4 d^2` for learned attention, `2 d^2` for
    hard-coded, and for all others as written here.

    Args:
        layer: an attention layer.
        width: of all its inputs and its output.

    Raises:
        TypeError: no formula is known for its class.
    """
    raise TypeError(
        f"No formula counts the parameters of this attention layer; "
        f"`attention_parameters.register` adds one. Received: {layer!r}"
    )


@attention_parameters.register
def _(layer: DotProductAttention, width: int) -> int:
    keys, values = head_widths(layer, width)
    return dense(layer, (width, keys), (width, keys), (width, values), (values, width))


@attention_parameters.register(HardCodedAttention)
@attention_parameters.register(HardCodedCrossAttention)
def _(layer, width: int) -> int:
    _, values = head_widths(layer, width)
    return dense(layer, (width, values), (values, width))


@attention_parameters.register
def _(layer: RecurrentCrossAttention, width: int) -> int:
    keys, values = head_widths(layer, width)
    key_square = keys * values // layer.num_heads  # a matrix per head
    value_square = values * values // layer.num_heads
    added = {
        recurrences.PreviousContext: key_square,
        recurrences.PreviousWeights: keys,
        recurrences.AccumulatedWeights: keys,
        recurrences.ExpandedShared: 0,
        recurrences.ExpandedFull: width * (keys + values),
        recurrences.ExpandedHead: key_square + value_square,
        recurrences.ExpandedHeadKey: key_square,
        recurrences.AccumulatedEnergies: 0,
        recurrences.SubtractedWeights: 0,
    }
    plain = attention_parameters.dispatch(DotProductAttention)
    return plain(layer, width) + added[type(layer.recurrence)]


@attention_parameters.register
def _(layer: PhraseAttention, width: int) -> int:
    keys, values = (total // layer.num_heads for total in head_widths(layer, width))
    query_orders = layer.structure.query_orders
    output = layer.structure.contexts * layer.num_heads * values
    matrices = [(output, width)]
    for group in layer.structure.groups(layer.num_heads):
        heads, orders = group.num_heads, group.orders
        matrices += [(n * width, heads * values) for n in orders]
        if layer.scoring == "conv_kv":
            matrices += [(m * width, heads * keys) for m in query_orders]
            matrices += [(n * width, heads * keys) for n in orders]
        else:
            matrices += [
                (m * width, heads * n * keys) for m in query_orders for n in orders
            ]
            matrices += [(width, heads * keys)]
    return dense(layer, *matrices)


@attention_parameters.register
def _(layer: NeuralNgram, width: int) -> int:
    _, units = head_widths(layer, width)
    # A head that sees a slice has a matrix of that many rows less.
    rows = width // layer.num_heads if layer.head_input == "slice" else width
    total = dense(layer, ((1 + sum(layer.reach)) * rows, units))
    if layer.global_context:
        total += rows * units
    if layer.output_projection:
        total += dense(layer, (units, width))
    return total


@attention_parameters.register
def _(layer: ConcatenatedNgram, width: int) -> int:
    inputs = len(layer.spans()) * width
    return dense(layer, (inputs, layer.hidden_dim), (layer.hidden_dim, width))


def head_widths(layer, width: int) -> tuple[int, int]:
    """The widths of the keys and of the values of all heads together."""
    heads = layer.num_heads
    widths = getattr(layer, "key_dim", None), layer.value_dim
    keys, values = (heads * (head or width // heads) for head in widths)
    return keys, values


def dense(layer, *matrices: tuple[int, int]) -> int:
    """Sizes of dense layers, given as matrices, with biases if the layer has them."""
    return sum(rows * columns + layer.use_bias * columns for rows, columns in matrices)


def count_parameters(config: Mapping[str, Any]) -> int:
    """Number of parameters of a `Transformer`.

    With width `d`, feed-forward width `f` and vocabulary `V`: `V d` for an embedding
    matrix; what the attention layers have; `2 d f + f + d` for a feed-forward
    sub-layer; `2 d` for a normalisation: one per sub-layer, and with `"pre"` one more
    for encoder and decoder, but none for a sub-layer that does not read its query.

    Args:
        config: arguments of `Transformer`, in the form of its `get_config`; what is
            missing has its default.

    Raises:
        TypeError: no formula for an attention layer is known, or it is no layer that
            Keras can deserialize.
    """
    config = with_defaults(Transformer, config)
    d, f = config["hidden_dim"], config["intermediate_dim"]
    pre = config["normalization"] == "pre"
    total = embedding_parameters(config) + 2 * pre * 2 * d
    for layer in attention_layers(config):
        total += sublayer_parameters(json.dumps(layer), d, pre)
    for num_layers in depths(config):
        flags = per_layer("feed_forward", config["feed_forward"], num_layers)
        total += sum(map(bool, flags)) * (2 * d * f + f + d + 2 * d)
    return total


def embedding_parameters(config: Mapping[str, Any]) -> int:
    """Parameters of embeddings, learned positions and the output projection."""
    target, width = config["vocabulary_size"], config["hidden_dim"]
    source = config["source_vocabulary_size"] or target
    positions = deserialize(config["positions"])
    total = config["softmax_bias"] * target
    if config["tie_embeddings"] == "none":
        total += target * width  # the output projection
    if isinstance(positions, ConcatenatedPositions):
        total += (positions.max_position + 1) * positions.position_dim
        width -= positions.position_dim
    tokens = target if config["tie_embeddings"] == "all" else source + target
    return total + tokens * width


@lru_cache(maxsize=1024)
def sublayer_parameters(layer: str, width: int, pre: bool) -> int:
    """Parameters of an attention sub-layer, given as JSON; many are the same."""
    attention = deserialize(json.loads(layer))
    normalized = attention.reads_query or not pre
    return attention_parameters(attention, width) + normalized * 2 * width


def attention_layers(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The serialized attention layers of all blocks, sub-layer by sub-layer."""
    encoder, decoder = depths(config)
    places = {
        "encoder_attention": encoder,
        "decoder_attention": decoder,
        "cross_attention": decoder,
    }
    layers = [
        layer
        for name, num_layers in places.items()
        for layer in per_layer(name, config[name], num_layers)
    ]
    return [layer for layer in layers if layer is not None]


def depths(config: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of encoder and of decoder blocks."""
    encoder, decoder = config["num_layers"], config["num_decoder_layers"]
    return encoder, encoder if decoder is None else decoder


def count_lstm_parameters(config: Mapping[str, Any]) -> int:
    """Number of parameters of a `Seq2SeqLSTM`.

    An LSTM of `u` units that reads `x` numbers has `4 u (x + u + 1)`. Embeddings of
    width `e` have `e` per token of source and target, the output projection `d + 1`
    per token of the target, and attention adds the context to what the decoder reads.

    Args:
        config: arguments of `Seq2SeqLSTM`, in the form of its `get_config`; what is
            missing has its default.
    """
    config = with_defaults(Seq2SeqLSTM, config)
    d, e = config["hidden_dim"], config["embedding_dim"]
    directions = 1 + config["bidirectional"]
    u = d // directions
    encoder = directions * 4 * u * (e + u + 1)
    decoder = 4 * d * (e + config["attention"] * d + d + 1)
    target = config["vocabulary_size"]
    source = config["source_vocabulary_size"] or target
    return encoder + decoder + (source + target) * e + target * (d + 1)


def with_defaults(model: type, config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a model, those that are missing with their defaults."""
    parameters = inspect.signature(model).parameters.values()
    return {**{p.name: p.default for p in parameters}, **config}
