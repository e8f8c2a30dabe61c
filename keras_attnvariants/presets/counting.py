"""Counting the parameters of a configuration without building its model."""

from collections.abc import Mapping
from typing import Any

from keras_attnvariants.models.templates import per_layer

# How many matrices, width times width, an attention layer learns: queries, keys,
# values and output, or values and output only.
MATRICES = {
    "DotProductAttention": 4,
    "HardCodedAttention": 2,
    "HardCodedCrossAttention": 2,
}


def count_parameters(config: Mapping[str, Any]) -> int:
    """Number of parameters of a `Transformer` as the presets here configure it.

    With width `d`, feed-forward width `f` and vocabulary `V`: `V d` for embeddings and
    output, which are tied; `n d^2` for an attention layer with `n` matrices;
    `2 d f + f + d` for a feed-forward sub-layer; `2 d` for the normalisation of
    every sub-layer. With normalisation `"pre"`, encoder and decoder have another,
    and hard-coded cross-attention, which reads no query, has none.

    Args:
        config: arguments of `Transformer`, in the form of its `get_config`.

    Raises:
        KeyError: no formula for an attention layer is known.
    """
    d, f = config["hidden_dim"], config["intermediate_dim"]
    total = config["vocabulary_size"] * d
    pre = config["normalization"] == "pre"
    if pre:
        total += 2 * 2 * d
    for attention in attention_layers(config):
        name = attention["class_name"].rpartition(">")[2]
        normalized = not (pre and name == "HardCodedCrossAttention")
        total += MATRICES[name] * d**2 + normalized * 2 * d
    depth = 2 * config["num_layers"]
    feed_forward = 2 * d * f + f + d + 2 * d
    return total + config["feed_forward"] * depth * feed_forward


def attention_layers(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The serialized attention layers of all blocks, sub-layer by sub-layer."""
    names = ("encoder_attention", "decoder_attention", "cross_attention")
    layers = [
        layer
        for name in names
        for layer in per_layer(name, config[name], config["num_layers"])
    ]
    return [layer for layer in layers if layer is not None]
