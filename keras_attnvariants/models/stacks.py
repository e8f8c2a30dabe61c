"""The encoder and decoder blocks of a model, made from its templates."""

from collections.abc import Mapping
from typing import Any

from keras_attnvariants.attention.checks import check_positive
from keras_attnvariants.models import templates
from keras_attnvariants.models.blocks import DecoderBlock
from keras_attnvariants.models.blocks import EncoderBlock
from keras_attnvariants.models.blocks import FeedForward


def encoder_blocks(config: Mapping[str, Any], dtype) -> list[EncoderBlock]:
    """The encoder blocks.

    Args:
        config: the arguments of `Transformer`.
        dtype: dtype policy of the model.
    """
    num_layers = check_positive("num_layers", config["num_layers"])
    sublayers = zip(
        attentions(config, dtype, "encoder", num_layers),
        feed_forwards(config, dtype, num_layers),
        strict=True,
    )
    return [
        EncoderBlock(*layers, **block_options(config, dtype), name=f"encoder_{i}")
        for i, layers in enumerate(sublayers)
    ]


def decoder_blocks(config: Mapping[str, Any], dtype) -> list[DecoderBlock]:
    """The decoder blocks; arguments as for `encoder_blocks`."""
    num_layers = config["num_decoder_layers"]
    if num_layers is None:
        num_layers = config["num_layers"]
    check_positive("num_decoder_layers", num_layers)
    sublayers = zip(
        attentions(config, dtype, "decoder", num_layers),
        attentions(config, dtype, "cross", num_layers),
        feed_forwards(config, dtype, num_layers),
        strict=True,
    )
    return [
        DecoderBlock(*layers, **block_options(config, dtype), name=f"decoder_{i}")
        for i, layers in enumerate(sublayers)
    ]


def attentions(config: Mapping[str, Any], dtype, role: str, num_layers: int) -> list:
    """One fresh attention layer, or `None`, per block."""
    argument = f"{role}_attention"
    entries = templates.per_layer(argument, config[argument], num_layers)
    for entry in entries:
        templates.check_role(argument, entry, role)
    name = "cross_attention" if role == "cross" else "self_attention"
    return [templates.clone(entry, dtype, name) for entry in entries]


def feed_forwards(
    config: Mapping[str, Any], dtype, num_layers: int
) -> list[FeedForward | None]:
    """One feed-forward layer, or `None`, per block."""
    flags = templates.per_layer("feed_forward", config["feed_forward"], num_layers)
    width = check_positive("intermediate_dim", config["intermediate_dim"])
    dropout = config["feed_forward_dropout"]
    return [
        FeedForward(width, config["activation"], dropout, dtype=dtype) if flag else None
        for flag in flags
    ]


def block_options(config: Mapping[str, Any], dtype) -> dict[str, Any]:
    """What all blocks have in common."""
    return {
        "normalization": config["normalization"],
        "dropout": config["dropout"],
        "dtype": dtype,
    }
