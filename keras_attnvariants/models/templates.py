"""Template layers: one attention layer stands for one in every block of a stack."""

import re
from collections.abc import Mapping
from collections.abc import Sequence
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

# How Keras begins when a class is not registered.
UNKNOWN_CLASS = re.compile(r"Could not locate class '([^']*)'")

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


def check_source_embedding(layer: Any, **options: Any) -> None:
    """Checks that `layer` can stand for the source embeddings, or is `None`.

    Args:
        layer: what was given as `source_embedding`.
        **options: other arguments of the model, which have to be what they are by
            default if there is a layer.

    Raises:
        TypeError: it is no such layer.
        ValueError: an option cannot go with it.
    """
    if layer is None:
        return
    if not hasattr(layer, "stride") or not hasattr(layer, "mask"):
        raise TypeError(
            "`source_embedding` must be a layer such as SpeechFrontEnd, with `stride`, "
            f"`vocabulary_size` and `mask`, or None. Received: {layer!r}"
        )
    for name, value in options.items():
        if value not in (0, None, layer.vocabulary_size):
            raise ValueError(
                f"`{name}` must be left out of a model with `source_embedding`. "
                f"Received: {value!r}"
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


def with_policy(model: keras.Model, policy: str) -> keras.Model:
    """A model like another, with the same weights and another dtype policy.

    Args:
        model: a model of this package.
        policy: such as `"float32"` or `"mixed_bfloat16"`.
    """
    other = type(model).from_config(model.get_config() | {"dtype": policy})
    other.set_weights(model.get_weights())
    return other


def serialize(templates: Any) -> Any:
    """A template, a list of them, or `None`, in a form that JSON can hold."""
    if isinstance(templates, list | tuple):
        return [serialize(template) for template in templates]
    return keras.saving.serialize_keras_object(templates)


def first_cause(error: BaseException) -> BaseException:
    """The error that led to all others up to the given one."""
    while before := error.__cause__ or error.__context__:
        error = before
    return error


def deserialize(config: Any) -> Any:
    """The inverse of `serialize`; other values are returned as they are.

    Keras reports what a constructor raises as a `TypeError` that prints the whole
    configuration. Here it is the error of the constructor if that is a `ValueError`.

    Raises:
        TypeError: a configuration is not that of an object.
        ValueError: an argument is out of range, or a class is not known.
    """
    if isinstance(config, list | tuple):
        return [deserialize(entry) for entry in config]
    if not isinstance(config, dict):
        return config
    try:
        return keras.saving.deserialize_keras_object(config)
    except TypeError as error:
        cause = first_cause(error)
        if isinstance(cause, ValueError):
            raise ValueError(str(cause)) from error
        if unknown := UNKNOWN_CLASS.search(str(cause)):
            raise ValueError(
                f"The class {unknown[1]!r} is not known: a class of your own has to be "
                "imported first, by a command with `--import package.module`. "
                f"Received: {config['class_name']!r}"
            ) from error
        raise


def blocks(
    cls: type[AnyBlock], num_layers: int, given: Mapping[str, Any], dtype: DType
) -> list[AnyBlock]:
    """The blocks of the encoder or of the decoder.

    Args:
        cls: class of the blocks.
        num_layers: number of blocks.
        given: arguments of `Transformer`, by name.
        dtype: dtype policy of the model.

    Raises:
        TypeError, ValueError: see `per_layer` and `check_role`.
    """
    sublayers: dict[str, list[Any]] = {}
    for role in cls.ROLES:
        argument = f"{role}_attention"
        entries = per_layer(argument, given[argument], num_layers)
        for entry in entries:
            check_role(argument, entry, role)
        name = "cross_attention" if role == "cross" else "self_attention"
        sublayers[name] = [clone(entry, dtype, name) for entry in entries]
    sizes = given["intermediate_dim"], given["activation"]
    rate = given["feed_forward_dropout"]
    sublayers["feed_forward"] = [
        FeedForward(*sizes, rate, dtype=dtype, name="feed_forward") if wanted else None
        for wanted in per_layer("feed_forward", given["feed_forward"], num_layers)
    ]
    common = {name: given[name] for name in ("normalization", "dropout")}
    return [
        cls(
            **dict(zip(sublayers, layers, strict=True)),
            **common,
            dtype=dtype,
            name=f"{cls.ROLES[0]}_{number}",
        )
        for number, layers in enumerate(zip(*sublayers.values(), strict=True))
    ]
