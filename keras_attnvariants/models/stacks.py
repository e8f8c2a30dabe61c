"""The encoder and decoder blocks of a model, made from its templates."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.models import templates
from keras_attnvariants.models.blocks import DecoderBlock
from keras_attnvariants.models.blocks import EncoderBlock
from keras_attnvariants.models.sublayers import FeedForward
from keras_attnvariants.models.templates import Templates
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import DType


@dataclass(frozen=True)
class BlockOptions:
    """What all blocks of a model have in common besides attention.

    Attributes:
        intermediate_dim: width of the feed-forward sub-layers.
        feed_forward: whether blocks have such a sub-layer: one bool, or one per block.
        dropout: rate on the output of every sub-layer.
        feed_forward_dropout: rate inside the feed-forward sub-layers.
        activation: of the feed-forward sub-layers.
        normalization: `"pre"` or `"post"`.
    """

    intermediate_dim: int
    feed_forward: bool | Sequence[bool]
    dropout: float
    feed_forward_dropout: float
    activation: str
    normalization: str


def encoder_blocks(
    num_layers: int, attention: Templates, options: BlockOptions, dtype: DType
) -> list[EncoderBlock]:
    """The encoder blocks.

    Args:
        num_layers: number of blocks.
        attention: template of self-attention, `None`, or a list of one per block.
        options: what all blocks have in common.
        dtype: dtype policy of the model.
    """
    sublayers = zip(
        attention_layers("encoder", attention, num_layers, dtype),
        feed_forward_layers(num_layers, options, dtype),
        strict=True,
    )
    return [
        EncoderBlock(
            *layers,
            normalization=options.normalization,
            dropout=options.dropout,
            dtype=dtype,
            name=f"encoder_{number}",
        )
        for number, layers in enumerate(sublayers)
    ]


def decoder_blocks(
    num_layers: int,
    self_attention: Templates,
    cross_attention: Templates,
    options: BlockOptions,
    dtype: DType,
) -> list[DecoderBlock]:
    """The decoder blocks; arguments as for `encoder_blocks`."""
    check_integer("num_decoder_layers", num_layers)
    sublayers = zip(
        attention_layers("decoder", self_attention, num_layers, dtype),
        attention_layers("cross", cross_attention, num_layers, dtype),
        feed_forward_layers(num_layers, options, dtype),
        strict=True,
    )
    return [
        DecoderBlock(
            *layers,
            normalization=options.normalization,
            dropout=options.dropout,
            dtype=dtype,
            name=f"decoder_{number}",
        )
        for number, layers in enumerate(sublayers)
    ]


def attention_layers(
    role: str, entries: Templates, num_layers: int, dtype: DType
) -> list[BaseAttention | None]:
    """One new attention layer, or `None`, per block.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        entries: a template, `None`, or a list of one per block.
        num_layers: number of blocks.
        dtype: dtype policy of the model.

    Raises:
        TypeError, ValueError: see `templates.per_layer` and `templates.check_role`.
    """
    argument = f"{role}_attention"
    entries = templates.per_layer(argument, entries, num_layers)
    for entry in entries:
        templates.check_role(argument, entry, role)
    name = "cross_attention" if role == "cross" else "self_attention"
    return [templates.clone(entry, dtype, name) for entry in entries]


def feed_forward_layers(
    num_layers: int, options: BlockOptions, dtype: DType
) -> list[FeedForward | None]:
    """One feed-forward layer, or `None`, per block."""
    flags = templates.per_layer("feed_forward", options.feed_forward, num_layers)
    return [
        FeedForward(
            options.intermediate_dim,
            options.activation,
            options.feed_forward_dropout,
            dtype=dtype,
        )
        if flag
        else None
        for flag in flags
    ]
