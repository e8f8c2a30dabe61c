"""Template layers: one attention layer stands for one in every block."""

from typing import Any

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.attention import variants


def per_layer(name: str, templates: Any, num_layers: int) -> list:
    """One entry per layer from a list of them, or from one entry for all.

    Raises:
        ValueError: a list has the wrong length.
    """
    if not isinstance(templates, list | tuple):
        return [templates] * num_layers
    if len(templates) != num_layers:
        raise ValueError(
            f"`{name}` must be one entry, or a list of one entry for each of "
            f"{num_layers} layers. Received: {len(templates)} entries"
        )
    return list(templates)


def lowest(count: int, template: Any, rest: Any, num_layers: int) -> list:
    """One entry per layer: `template` in the `count` lowest layers, `rest` above.

    Args:
        count: number of layers, from 0 to `num_layers`.
        template, rest: attention layers, or `None` for no such sub-layer; in a
            configuration, what Keras serializes them to.
        num_layers: number of layers in all.

    Raises:
        ValueError: there are not so many layers.

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


def highest(count: int, template: Any, rest: Any, num_layers: int) -> list:
    """One entry per layer: `template` in the `count` highest layers, `rest` below.

    Arguments and errors as for `lowest`.

    Example:

    >>> highest(1, "one head", rest=None, num_layers=3)
    [None, None, 'one head']
    """
    check_count(count, num_layers)
    return [rest] * (num_layers - count) + [template] * count


def check_count(count: int, num_layers: int) -> None:
    """Raises unless there are `count` layers to choose."""
    if not 0 <= count <= num_layers:
        raise ValueError(
            f"`count` must be from 0 to num_layers={num_layers}. Received: {count}"
        )


def check_role(name: str, template: Any, role: str) -> None:
    """Raises unless `template` is an attention layer that fits `role`, or `None`."""
    if template is None:
        return
    fitting = ", ".join(sorted(variants(role)))
    if not isinstance(template, BaseAttention):
        raise TypeError(
            f"`{name}` takes attention layers ({fitting}), a list of them, or None. "
            f"Received: {template!r}"
        )
    if role not in template.roles:
        can_be = role in type(template).roles
        how = f" (see its `{template.roles_argument}`)" if can_be else ""
        raise ValueError(
            f"{type(template).__name__} cannot serve as {role} attention (`{name}`): "
            f"its equation makes sense as {' or '.join(sorted(template.roles))}{how}. "
            f"Alternatives: {fitting}. Received: {name}={type(template).__name__}"
        )


def clone(
    template: keras.layers.Layer | None, dtype, name: str
) -> keras.layers.Layer | None:
    """A fresh layer of the same configuration, in the model's dtype policy."""
    if template is None:
        return None
    config = {**template.get_config(), "dtype": dtype, "name": name}
    return type(template).from_config(config)


def serialize(templates: Any) -> Any:
    """A JSON-able form of a template, of a list of them, or of `None`."""
    if isinstance(templates, list | tuple):
        return [serialize(template) for template in templates]
    return keras.saving.serialize_keras_object(templates)


def deserialize(config: Any) -> Any:
    """The inverse of `serialize`; templates themselves pass through."""
    if isinstance(config, list | tuple):
        return [deserialize(entry) for entry in config]
    if isinstance(config, dict):
        return keras.saving.deserialize_keras_object(config)
    return config
