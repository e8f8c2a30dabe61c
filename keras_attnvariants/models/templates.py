"""Template layers: one attention layer stands for one in every block of a stack."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeVar

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.attention import variants
from keras_attnvariants.models.blocks import Block
from keras_attnvariants.models.sublayers import FeedForward
from keras_attnvariants.utils.typing import DType

AnyBlock = TypeVar("AnyBlock", bound=Block)

# An attention layer, `None` for no such sub-layer, or a list of one for each block.
Templates = BaseAttention | None | Sequence[BaseAttention | None]

# The arguments that a variant has to be given for a role.
NEEDED = {
    ("ConcatenatedNgram", "decoder"): "causal=True",
    ("NeuralNgram", "decoder"): "causal=True",
}

# The arguments with which a layer that cannot serve in a role could.
REMEDIES = NEEDED | {
    ("ConcatenatedNgram", "encoder"): "causal=False",
    ("NeuralNgram", "encoder"): "causal=False",
    ("PhraseAttention", "encoder"): "structure=Interleaved(look_ahead=True)",
    ("PhraseAttention", "decoder"): "structure=Interleaved(look_ahead=False)",
    ("PhraseAttention", "cross"): "structure=Interleaved(look_ahead=False)",
    ("RelativeBiasAttention", "encoder"): "bidirectional=True",
}


def per_layer(name: str, templates: Any, num_layers: int) -> list[Any]:
    """One entry per block, from a list of them or from one entry for all.

    Raises:
        ValueError: the length of a list is not `num_layers`.
    """
    if not isinstance(templates, list | tuple):
        return [templates] * num_layers
    if len(templates) != num_layers:
        raise ValueError(
            f"`{name}` must be one entry for all layers, or a list of one for each of "
            f"{num_layers} layers. Received: {len(templates)} entries"
        )
    return list(templates)


def lowest(count: int, template: Any, rest: Any, num_layers: int) -> list[Any]:
    """One entry per layer: `template` in the `count` lowest layers, `rest` above.

    Args:
        count: number of layers, from 0 to `num_layers`.
        template, rest: attention layers, or `None` for no such sub-layer; in a
            configuration, what Keras serializes them to.
        num_layers: number of layers in all.

    Raises:
        ValueError: there are fewer layers than `count`.

    Example:

    >>> from keras_attnvariants.attention import DotProductAttention, NeuralNgram
    >>> stack = lowest(
    ...     1, NeuralNgram(num_heads=4), rest=DotProductAttention(num_heads=4),
    ...     num_layers=3,
    ... )
    >>> [type(layer).__name__ for layer in stack]
    ['NeuralNgram', 'DotProductAttention', 'DotProductAttention']
    """
    check_count(count, num_layers)
    return [template] * count + [rest] * (num_layers - count)


def highest(count: int, template: Any, rest: Any, num_layers: int) -> list[Any]:
    """One entry per layer: `template` in the `count` highest layers, `rest` below.

    Arguments and errors as for `lowest`.

    Example:

    >>> highest(1, "one head", rest=None, num_layers=3)
    [None, None, 'one head']
    """
    check_count(count, num_layers)
    return [rest] * (num_layers - count) + [template] * count


def check_count(count: int, num_layers: int) -> None:
    """Raises `ValueError` unless there are `count` layers to choose."""
    if not 0 <= count <= num_layers:
        raise ValueError(
            f"`count` must be from 0 to num_layers={num_layers}. Received: {count}"
        )


def check_role(name: str, template: Any, role: str) -> None:
    """Checks that `template` is an attention layer that fits `role`, or `None`.

    Args:
        name: name of the argument, such as `"cross_attention"`.
        template: what was given for it.
        role: `"encoder"`, `"decoder"` or `"cross"`.

    Raises:
        TypeError: it is something else.
        ValueError: the layer cannot serve in the role; the message lists alternatives.
    """
    if template is None:
        return
    if not isinstance(template, BaseAttention):
        raise TypeError(
            f"`{name}` must be an attention layer ({', '.join(alternatives(role))}), "
            f"None, or a list of these. Received: {template!r}"
        )
    if role not in template.roles:
        kind = type(template).__name__
        change = REMEDIES.get((kind, role))
        raise ValueError(
            f"{kind} cannot serve as {role} attention (`{name}`): as configured, it "
            f"can serve as {' or '.join(sorted(template.roles))} attention. "
            f"{f'With {change} it can. ' if change else ''}"
            f"Alternatives: {', '.join(alternatives(role, but=kind))}. "
            f"Received: {name}={kind}"
        )


def alternatives(role: str, but: str = "") -> list[str]:
    """The variants that can serve in a role, with the arguments that it needs.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        but: the name of a class that is none of them.
    """
    return [
        f"{name}({NEEDED[name, role]})" if (name, role) in NEEDED else name
        for name in sorted(variants(role))
        if name != but
    ]


def clone(
    template: keras.layers.Layer | None, dtype: DType, name: str
) -> keras.layers.Layer | None:
    """A new layer of the same configuration, or `None` for `None`.

    Args:
        template: the layer to clone.
        dtype: dtype policy of the clone.
        name: name of the clone.
    """
    if template is None:
        return None
    config = {**template.get_config(), "dtype": dtype, "name": name}
    return type(template).from_config(config)


def serialize(templates: Any) -> Any:
    """A template, a list of them, or `None`, in a form that JSON can hold."""
    if isinstance(templates, list | tuple):
        return [serialize(template) for template in templates]
    return keras.saving.serialize_keras_object(templates)


def deserialize(config: Any) -> Any:
    """The inverse of `serialize`; other values are returned as they are."""
    if isinstance(config, list | tuple):
        return [deserialize(entry) for entry in config]
    if isinstance(config, dict):
        return keras.saving.deserialize_keras_object(config)
    return config


@dataclass(frozen=True)
class BlockOptions:
    """The options that all blocks of a model have in common.

    Attributes:
        intermediate_dim: width of the feed-forward sub-layers.
        feed_forward: whether blocks have such a sub-layer: one bool, or one per block.
        dropout: rate on the output of every sub-layer.
        feed_forward_dropout: rate inside the feed-forward sub-layers.
        activation: activation of the feed-forward sub-layers.
        normalization: `"pre"` or `"post"`.
    """

    intermediate_dim: int
    feed_forward: bool | Sequence[bool]
    dropout: float
    feed_forward_dropout: float
    activation: str
    normalization: str


def blocks(
    cls: Callable[..., AnyBlock],
    name: str,
    num_layers: int,
    attention: Mapping[str, Templates],
    options: BlockOptions,
    dtype: DType,
) -> list[AnyBlock]:
    """The blocks of the encoder or of the decoder.

    Args:
        cls: class of the blocks.
        name: beginning of their names; their numbers follow.
        num_layers: number of blocks.
        attention: templates by role, in the order of the arguments of `cls`.
        options: what all blocks have in common.
        dtype: dtype policy of the model.
    """
    sublayers: list[list[Any]] = [
        attention_layers(role, entries, num_layers, dtype)
        for role, entries in attention.items()
    ]
    sublayers.append(feed_forward_layers(num_layers, options, dtype))
    return [
        cls(
            *layers,
            normalization=options.normalization,
            dropout=options.dropout,
            dtype=dtype,
            name=f"{name}_{number}",
        )
        for number, layers in enumerate(zip(*sublayers, strict=True))
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
        TypeError, ValueError: see `per_layer` and `check_role`.
    """
    argument = f"{role}_attention"
    entries = per_layer(argument, entries, num_layers)
    for entry in entries:
        check_role(argument, entry, role)
    name = "cross_attention" if role == "cross" else "self_attention"
    return [clone(entry, dtype, name) for entry in entries]


def feed_forward_layers(
    num_layers: int, options: BlockOptions, dtype: DType
) -> list[FeedForward | None]:
    """One feed-forward layer, or `None`, per block."""
    flags = per_layer("feed_forward", options.feed_forward, num_layers)
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
