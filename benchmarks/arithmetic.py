"""Counts the multiply-adds of a decoder, which limit the gain of a variant."""

import dataclasses
import inspect
import math
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

from keras_attnvariants.attention import DotProductAttention
from keras_attnvariants.attention import HardCodedAttention
from keras_attnvariants.attention import NeuralNgram
from keras_attnvariants.attention import PhraseAttention
from keras_attnvariants.models import Transformer
from keras_attnvariants.models.templates import deserialize
from keras_attnvariants.models.templates import per_layer


@dataclasses.dataclass(frozen=True)
class MultiplyAdds:
    """Multiply-adds of one hypothesis in one step, on average over the steps.

    Attributes:
        projections: projections of attention to queries, keys, values and outputs.
        products: products of queries with keys, and of weights with values.
        feed_forward: feed-forward sub-layers.
        vocabulary: projection to logits.
    """

    projections: float
    products: float
    feed_forward: float
    vocabulary: float

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return sum(dataclasses.astuple(self))


def decoding_step(
    config: Mapping[str, Any], source_length: int, steps: int
) -> MultiplyAdds:
    """The arithmetic of a decoding step of `Transformer`.

    Keys and values of the source, computed once for a sentence, are not included.

    Args:
        config: arguments of `Transformer`, in the form of its `get_config`.
        source_length: number of source tokens.
        steps: number of steps; step `t` sees `t` target tokens.
    """
    config = with_defaults(Transformer, config)
    width = config["hidden_dim"]
    num_layers = config["num_decoder_layers"] or config["num_layers"]
    projections = products = 0.0
    lengths = {"decoder_attention": (steps + 1) / 2, "cross_attention": source_length}
    for role, length in lengths.items():
        for template in per_layer(role, config[role], num_layers):
            layer = deserialize(template)
            if layer is not None:
                is_cross = role == "cross_attention"
                own = attention(layer, width, length, is_cross)
                projections, products = projections + own[0], products + own[1]
    flags = per_layer("feed_forward", config["feed_forward"], num_layers)
    return MultiplyAdds(
        projections,
        products,
        sum(map(bool, flags)) * 2 * width * config["intermediate_dim"],
        width * config["vocabulary_size"],
    )


@singledispatch
def attention(layer, width: int, length: float, is_cross: bool) -> tuple[float, float]:
    """Multiply-adds of one layer in one step: projections and products.

    Args:
        layer: an attention layer, which need not be built.
        width: width of the model.
        length: number of visible tokens.
        is_cross: whether these are source tokens, whose keys and values are given.

    Raises:
        TypeError: no formula is known for its class.
    """
    raise TypeError(f"No formula counts the arithmetic of {type(layer).__name__}.")


@attention.register
def _(layer: DotProductAttention, width, length, is_cross):
    keys, values = head_widths(layer, width)
    both = keys + values
    return both * width * (1 if is_cross else 2), both * length


@attention.register
def _(layer: HardCodedAttention, width, length, is_cross):
    _, values = head_widths(layer, width)
    kernel, _ = layer.kernel(causal=True)
    return 2 * width * values, values * len(kernel)


@attention.register
def _(layer: NeuralNgram, width, length, is_cross):
    return multiplied(layer, width, is_cross), 0.0


@attention.register
def _(layer: PhraseAttention, width, length, is_cross):
    projections = multiplied(layer, width, is_cross)
    streams = len(layer.structure.query_orders)
    products = 0
    for heads in layer.groups:
        for order in heads.group.orders:
            tokens = 1 if layer.scoring == "conv_kv" else order
            numbers = tokens * heads.key_dim + heads.value_dim
            products += streams * heads.group.num_heads * numbers
    return projections, products * length


def multiplied(layer, width: int, is_cross: bool) -> int:
    """Entries of all matrices, except those for keys and values of cross-attention."""
    layer.build((None, None, width), (None, None, width))
    matrices = {
        weight.path.split("/")[-2]: math.prod(weight.shape)
        for weight in layer.weights
        if weight.path.endswith("kernel")
    }
    made_once = ("key", "value") if is_cross else ()
    return sum(
        size
        for name, size in matrices.items()
        if not any(kind in name for kind in made_once)
    )


def head_widths(layer, width: int) -> tuple[int, int]:
    """The widths of the keys and of the values of all heads together."""
    heads = layer.num_heads
    widths = getattr(layer, "key_dim", None), layer.value_dim
    keys, values = (heads * (head or width // heads) for head in widths)
    return keys, values


def with_defaults(model: type, config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a model, with defaults for those that are missing."""
    parameters = inspect.signature(model).parameters.values()
    return {**{p.name: p.default for p in parameters}, **config}
