"""What to use instead of an attention layer that cannot serve in a role."""

import inspect
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.attention import variants
from keras_attnvariants.attention.registry import Variant


def alternatives(role: str, refused: BaseAttention | None = None) -> list[str]:
    """The registered variants that can serve in a role, as one would write them.

    A bare class name means that the role needs no particular arguments. Those that it
    needs are named: `"NeuralNgram(causal=True)"`.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        refused: the layer that is to be replaced; its class is none of them.
    """
    found = []
    for name, variant in sorted(variants(role).items()):
        example = variant.example_for(role)
        if example is not None and type(refused) is not variant.cls:
            arguments = needed_arguments(variant, role, example)
            found.append(f"{name}({written(arguments)})" if arguments else name)
    return found


def remedy(role: str, refused: BaseAttention) -> str:
    """The arguments with which a layer could serve in a role; empty if none help.

    Args:
        role: `"encoder"`, `"decoder"` or `"cross"`.
        refused: the layer, which cannot serve as it is configured.
    """
    variant = variants(role).get(type(refused).__name__)
    if variant is None or type(refused) is not variant.cls:
        return ""
    example = variant.example_for(role)
    if example is None:
        return ""
    arguments = needed_arguments(variant, role, example)
    return written(arguments or needed_changes(refused, role, example))


def needed_arguments(
    variant: Variant, role: str, example: Mapping[str, Any]
) -> dict[str, Any]:
    """The optional arguments of an example without which it cannot serve in a role."""
    parameters = inspect.signature(variant.cls.__init__).parameters
    required = {
        name: value
        for name, value in example.items()
        if name in parameters and parameters[name].default is inspect.Parameter.empty
    }
    optional = {name: example[name] for name in example if name not in required}
    return fewest(
        optional, lambda chosen: role in variant.cls(**required, **chosen).roles
    )


def needed_changes(
    layer: BaseAttention, role: str, example: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries of its configuration that a layer must change to serve in a role."""
    config, cls = layer.get_config(), type(layer)
    target = {**cls(**example).get_config(), "name": config["name"]}
    changes = {key: value for key, value in target.items() if config[key] != value}
    return fewest(
        changes, lambda chosen: role in cls.from_config({**config, **chosen}).roles
    )


def fewest(
    arguments: dict[str, Any], suffice: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """The arguments without those that are not needed to `suffice`."""
    for name in list(arguments):
        others = {key: arguments[key] for key in arguments if key != name}
        try:
            if suffice(others):
                arguments = others
        except (TypeError, ValueError):  # no layer takes these together
            continue
    return arguments


def written(arguments: Mapping[str, Any]) -> str:
    """Arguments as in code.

    Args:
        arguments: values, or what Keras serializes them to, by name.
    """
    values = {
        key: keras.saving.deserialize_keras_object(value)
        if isinstance(value, dict)
        else value
        for key, value in arguments.items()
    }
    return ", ".join(f"{key}={value!r}" for key, value in values.items())
