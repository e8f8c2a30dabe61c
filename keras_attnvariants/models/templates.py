"""Template layers: one attention layer is cloned for every block of a stack."""

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

# The arguments that a variant needs for a role.
NEEDED = {
    ("ConcatenatedNgram", "decoder"): "causal=True",
    ("NeuralNgram", "decoder"): "causal=True",
}

# The start of Keras' message about a class that is not registered.
UNKNOWN_CLASS = re.compile(r"Could not locate class '([^']*)'")

# The arguments with which a layer would fit a role that it does not fit.
REMEDIES = NEEDED | {
    ("ConcatenatedNgram", "encoder"): "causal=False",
    ("NeuralNgram", "encoder"): "causal=False",
    ("PhraseAttention", "encoder"): "structure=Interleaved(look_ahead=True)",
    ("PhraseAttention", "decoder"): "structure=Interleaved(look_ahead=False)",
    ("PhraseAttention", "cross"): "structure=Interleaved(look_ahead=False)",
    ("RelativeBiasAttention", "encoder"): "bidirectional=True",
}


def per_layer(name: str, templates: Any, num_layers: int) -> list[Any]:
    """One entry per block, from a list or from a single entry for all blocks.

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
        template: value of the argument.
        role: `"encoder"`, `"decoder"` or `"cross"`.

    Raises:
        TypeError: `template` is something else.
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
            f"Alternatives: {', '.join(alternatives(role, excluded=kind))}. "
            f"Received: {name}={kind}"
        )


def check_source_embedding(layer: Any, **options: Any) -> None:
    """Checks that `layer` can replace the source embeddings, or is `None`.

    Args:
        layer: value of the argument `source_embedding`.
        **options: other arguments of the model, which must be left out if there is a
            layer.

    Raises:
        TypeError: it is no such layer.
        ValueError: an option was not left out.
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


def alternatives(role: str, excluded: str = "") -> list[str]:
    """The variants that can serve in a role, with the arguments that it needs.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        excluded: the name of a class to leave out.
    """
    return [
        f"{name}({NEEDED[name, role]})" if (name, role) in NEEDED else name
        for name in sorted(variants(role))
        if name != excluded
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
    """Copies a model with its weights, under another dtype policy.

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
    """The original error, at the start of the chain of causes of the given one."""
    while before := error.__cause__ or error.__context__:
        error = before
    return error


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The inverse of `serialize`; other values are returned as they are.

    Keras turns errors of a constructor into a `TypeError` that prints the whole
    configuration. This function raises a `ValueError` of the constructor as it is.

    Args:
        config: a result of `serialize`.
        custom_objects: classes that are not registered, by name; or `None`.

    Raises:
        TypeError: a configuration does not describe an object.
        ValueError: an argument is out of range, or a class is not known.
    """
    if isinstance(config, list | tuple):
        return [deserialize(entry, custom_objects) for entry in config]
    if not isinstance(config, dict):
        return config
    try:
        return keras.saving.deserialize_keras_object(config, custom_objects)
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
