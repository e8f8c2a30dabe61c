"""Template layers: one attention layer stands for one in every block."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.models.alternatives import alternatives
from keras_attnvariants.models.alternatives import remedy
from keras_attnvariants.utils.typing import DType

# An attention layer, `None` for no such sub-layer, or a list of one for each block.
Templates = BaseAttention | None | Sequence[BaseAttention | None]


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
        name: of the argument, such as `"cross_attention"`.
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
        kind, change = type(template).__name__, remedy(role, template)
        raise ValueError(
            f"{kind} cannot serve as {role} attention (`{name}`): as configured, it "
            f"can serve as {' or '.join(sorted(template.roles))} attention. "
            f"{f'With {change} it can. ' if change else ''}"
            f"Alternatives: {', '.join(alternatives(role, template))}. "
            f"Received: {name}={kind}"
        )


def clone(
    template: keras.layers.Layer | None, dtype: DType, name: str
) -> keras.layers.Layer | None:
    """A new layer of the same configuration, or `None` for `None`.

    Args:
        template: the layer to clone.
        dtype: dtype policy of the clone.
        name: of the clone.
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
