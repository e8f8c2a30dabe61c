"""Replacing the attention layers of an existing Keras model with a variant."""

import inspect
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from typing import NamedTuple

import keras
from keras import ops

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.backend.private import is_functional
from keras_attnvariants.models.templates import check_role


@dataclass(frozen=True)
class SwappedLayer:
    """A replaced layer, and what became of its weights; `print` shows one line.

    Attributes:
        name: name of the layer, before and after.
        before, after: names of the old and the new class.
        taken: weights of the old layer that the new one has taken over.
        left: weights of the old layer that the new one does not use.
        new: weights of the new layer that have their initial values.
    """

    name: str
    before: str
    after: str
    taken: tuple[str, ...]
    left: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        lists = {"taken": self.taken, "left": self.left, "new": self.new}
        parts = [f"{key}: {', '.join(names) or 'none'}" for key, names in lists.items()]
        return f"{self.name}: {self.after} for {self.before}; {'; '.join(parts)}"


class SwappedModel(NamedTuple):
    """The result of `swap_attention`.

    Attributes:
        model: the new model.
        layers: a `SwappedLayer` for each replaced layer.
    """

    model: keras.Model
    layers: tuple[SwappedLayer, ...]


def swap_attention(
    model: keras.Model,
    layer: BaseAttention,
    names: Collection[str] | None = None,
) -> SwappedModel:
    """Copies a model, with its attention layers replaced by a variant.

    Attention layers are `keras.layers.MultiHeadAttention` and those of this package,
    in the model or in functional and Sequential models within it. A variant with the
    same number and width of heads takes over the projections that it has: queries and
    keys together, values and output together. `key_dim` and `value_dim` are those of
    the old layer unless `layer` sets them. All other layers keep their weights. At
    padded queries, the attention of this package returns 0.

    Args:
        model: a built functional or Sequential model; it is not changed.
        layer: the variant. Each copy of it has the name, dtype policy and `trainable`
            of the layer that it replaces.
        names: names of the layers to replace, in all models within `model` that have
            them; `None` for all attention layers.

    Returns:
        A `SwappedModel`, that is `(model, layers)`. The new model is compiled if the
        old one was.

    Raises:
        TypeError: `layer` is not an attention layer of this package.
        ValueError: the model is of another kind, is not built, or has no such layers;
            or the variant cannot do what the old layer does.

    Example:

    >>> import keras_attnvariants as kav
    >>> x = keras.Input((None, 16))
    >>> attention = keras.layers.MultiHeadAttention(2, key_dim=8, use_bias=False)
    >>> model = keras.Model(x, attention(x, x))
    >>> variant = kav.HardCodedAttention(num_heads=2, offsets=(-1, 1))
    >>> model, [swapped] = kav.swap_attention(model, variant)
    >>> swapped.taken, swapped.left, swapped.new
    (('value/kernel', 'attention_output/kernel'), ('query/kernel', 'key/kernel'), ())
    """
    check_model(model)
    if not isinstance(layer, BaseAttention):
        raise TypeError(
            f"`layer` must be an attention layer of this package. Received: {layer!r}"
        )
    chosen = chosen_layers(model, names)
    swapped, copies = copied(model, layer, chosen)
    if not chosen <= {id(old) for old, _ in copies}:
        raise ValueError(
            "`model` must not have attention in a model within a Sequential one: "
            f"`clone_model` of Keras {keras.__version__} does not reach it"
        )
    if not swapped.built:
        swapped.build(model.input_shape)
    for old, new in copies:
        if id(old) not in chosen:
            new.set_weights(old.get_weights())
    reports = [report(old, new) for old, new in copies if id(old) in chosen]
    return SwappedModel(swapped, tuple(reports))


def copied(
    model: keras.Model, layer: BaseAttention, chosen: set[int]
) -> tuple[keras.Model, list[tuple[keras.layers.Layer, keras.layers.Layer]]]:
    """A copy of a model without its weights, and all its layers with their copies.

    Args:
        model: a functional or Sequential model.
        layer: the variant whose copies replace the chosen layers.
        chosen: ids of the attention layers to replace.
    """
    copies: list[tuple[keras.layers.Layer, keras.layers.Layer]] = []

    def copy(old: keras.layers.Layer) -> keras.layers.Layer:
        if not isinstance(old, keras.layers.Layer):
            return old  # an operation, such as a sum, has no state
        if id(old) in chosen:
            new = variant_for(old, layer)
        else:
            new = type(old).from_config(old.get_config())
        copies.append((old, new))
        return new

    def call(new: keras.layers.Layer, *args: Any, **kwargs: Any) -> Any:
        if any(new is each for old, each in copies if id(old) in chosen):
            check_call(new, args, kwargs)
        return new(*args, **kwargs)

    # In Sequential models, layers are not called one by one.
    options = {} if isinstance(model, keras.Sequential) else {"call_function": call}
    swapped = keras.models.clone_model(
        model, clone_function=copy, recursive=True, **options
    )
    return swapped, copies


def check_model(model: keras.Model) -> None:
    """Raises `ValueError` unless a model can be copied layer by layer."""
    if not isinstance(model, keras.Sequential) and not is_functional(model):
        raise ValueError(
            "`model` must be a functional or Sequential model, whose layers are known; "
            "a model class such as `Transformer` takes attention layers as arguments. "
            f"Received: {type(model).__name__}"
        )
    if not model.built:
        raise ValueError(
            "`model` must be built, so that it has weights. Received: a Sequential "
            "model without input shape"
        )


def chosen_layers(model: keras.Model, names: Collection[str] | None) -> set[int]:
    """The ids of the attention layers to replace.

    Raises:
        ValueError: there are none, or one of `names` is not an attention layer.
    """
    layers = attention_layers(model)
    known = dict.fromkeys(layer.name for layer in layers)
    if not layers:
        raise ValueError(
            "`model` must have attention layers: `keras.layers.MultiHeadAttention` or "
            "those of this package, not within other layers. Received: a model without"
        )
    names = known if names is None else names
    unknown = sorted(set(names) - set(known))
    if unknown or not names:
        raise ValueError(
            f"`names` must be names of attention layers ({', '.join(known)}). "
            f"Received: {unknown or names}"
        )
    return {id(layer) for layer in layers if layer.name in names}


def attention_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """The attention layers of a model and of the models within it."""
    found = []
    for layer in model.layers:
        if isinstance(layer, keras.Sequential) or is_functional(layer):
            found += attention_layers(layer)
        elif isinstance(layer, BaseAttention | keras.layers.MultiHeadAttention):
            found.append(layer)
    return found


def variant_for(old: keras.layers.Layer, template: BaseAttention) -> BaseAttention:
    """A copy of the template to replace an attention layer.

    Raises:
        ValueError: the old layer does something that no variant can do.
    """
    before, sizes = old.get_config(), projections(old)
    width, _ = sizes.get("query_dense", (None, None))
    for name, allowed in (
        ("attention_axes", (None, (1,), [1])),
        ("output_shape", (None, (width,), [width])),
    ):
        if before.get(name) not in allowed:
            raise ValueError(
                f"`{name}` of the layer {old.name!r} must be {allowed[1]}, because the "
                "variants attend over [batch, length, width] and return the width of "
                f"the query. Received: {before[name]}"
            )
    place = {"dtype": old.dtype_policy, "name": old.name, "trainable": old.trainable}
    config = {**template.get_config(), **place}
    if getattr(old, "num_heads", None) == template.num_heads:
        for name, dense in (("key_dim", "key_dense"), ("value_dim", "value_dense")):
            if dense in sizes and config.get(name, "") is None:
                config[name] = sizes[dense][1] // template.num_heads
    return type(template).from_config(config)


def check_call(layer: BaseAttention, args: Any, kwargs: Any) -> None:
    """Raises `ValueError` if a layer cannot be called like this."""
    call = inspect.signature(layer.call).bind(*args, **kwargs).arguments
    if call.get("use_causal_mask"):
        check_role("layer", layer, "decoder")
    elif call["query"] is not call["value"]:
        check_role("layer", layer, "cross")
    elif call.get("attention_mask") is None:
        check_role("layer", layer, "encoder")


# Projections that are taken over together: keys only fit their queries, and outputs
# only their values.
PAIRS = (("query_dense", "key_dense"), ("value_dense", "output_dense"))


def report(old: keras.layers.Layer, new: BaseAttention) -> SwappedLayer:
    """Copies the projections that mean the same in two layers, and reports them.

    Raises:
        ValueError: the old layer is quantized.
    """
    taken = take_projections(old, new)
    used = {id(weight) for pair in taken for weight in pair}

    def rest(layer: keras.layers.Layer) -> tuple[str, ...]:
        return tuple(weight_name(w) for w in layer.weights if id(w) not in used)

    return SwappedLayer(
        name=old.name,
        before=type(old).__name__,
        after=type(new).__name__,
        taken=tuple(weight_name(weight) for weight, _ in taken),
        left=rest(old),
        new=rest(new),
    )


def take_projections(
    old: keras.layers.Layer, new: BaseAttention
) -> list[tuple[Any, Any]]:
    """Copies the projections that mean the same in two layers.

    Returns:
        Pairs of a weight of the old layer and its copy in the new one.

    Raises:
        ValueError: the old layer is quantized.
    """
    taken: list[tuple[Any, Any]] = []
    is_alike = getattr(old, "num_heads", None) == getattr(new, "num_heads", None)
    ours, theirs = (projections(new), projections(old)) if is_alike else ({}, {})
    for names in PAIRS:
        if all(name in ours and ours[name] == theirs.get(name) for name in names):
            for name in names:
                one, other = getattr(old, name), getattr(new, name)
                taken.append((one.kernel, other.kernel))
                if one.bias is not None and other.bias is not None:
                    taken.append((one.bias, other.bias))
    for one, other in taken:
        other.assign(ops.copy(ops.reshape(one, other.shape)))
    return taken


def projections(layer: keras.layers.Layer) -> dict[str, tuple[int, int]]:
    """The shape of each projection of a layer, as one matrix.

    The kernels of Keras have another axis, for the heads.

    Raises:
        ValueError: the layer is quantized.
    """
    found = {}
    for name in (name for pair in PAIRS for name in pair if hasattr(layer, name)):
        dense = getattr(layer, name)
        if getattr(dense, "quantization_mode", None) is not None:
            raise ValueError(
                "`model` must not be quantized; swap first, then quantize. "
                f"Received: {layer.name!r} in {dense.quantization_mode}"
            )
        shape = tuple(map(int, dense.kernel.shape))
        inputs = len(shape) - 1 if name == "output_dense" else 1
        found[name] = math.prod(shape[:inputs]), math.prod(shape[inputs:])
    return found


def weight_name(weight: Any) -> str:
    """The last two parts of the path of a weight, such as `"query/kernel"`."""
    return "/".join(weight.path.split("/")[-2:])
