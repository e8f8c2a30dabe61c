"""Transfers the weights of a trained model to another model."""

import contextlib
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import keras
from keras import ops
from rich.table import Column
from rich.table import Table

from keras_attnvariants.attention import BaseAttention
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.models.swapping import take_projections
from keras_attnvariants.utils.records import as_text

# Settings of a layer that do not change what its weights mean.
_IRRELEVANT = ("name", "dtype", "trainable")


class TakenWeights(NamedTuple):
    """The result of `take_weights`; `print` shows a table by part of the models.

    Attributes:
        taken: paths of the weights that the new model has taken over, and their numbers
            of elements.
        left: the same for weights of the old model that the new one does not use.
        new: the same for weights of the new model that have their initial values.
    """

    taken: dict[str, int]
    left: dict[str, int]
    new: dict[str, int]

    def __str__(self) -> str:
        numbers = (Column(name, justify="right") for name in self._fields)
        table = Table("part", *numbers, box=None, pad_edge=False)
        paths = (path for found in self for path in found)
        for part in dict.fromkeys(path.partition("/")[0] for path in paths):
            table.add_row(part, *(f"{_sum(found, part):,}" for found in self))
        table.add_row("all", *(f"{sum(found.values()):,}" for found in self))
        return as_text(table, width=80)


def take_weights(old: keras.Model, new: keras.Model) -> TakenWeights:
    """Copies the weights of a model to another one, where they mean the same.

    They do if their layers have the same place and their shapes are equal. Attention
    layers that differ in kind or configuration take over projections as in
    `swap_attention`: queries with keys, values with outputs.

    Args:
        old: a built model.
        new: another model, whose weights are set.

    Raises:
        ValueError: no matrix has the same place and shape in both.
    """
    theirs, ours = by_path(old.weights), by_path(new.weights)
    taken: set[str] = set()
    decided: tuple[str, ...] = ()
    for before, after in _changed_attention(old, new):
        decided = (*decided, f"{_place(after.path)}/")
        pairs = take_projections(before, after)
        taken |= {_place(weight.path) for _, weight in pairs}
    for path, weight in ours.items():
        same = theirs.get(path)
        if path.startswith(decided) or same is None or same.shape != weight.shape:
            continue
        # Training on JAX deletes the arrays of a model, which two must not share.
        weight.assign(ops.copy(same.value))
        taken.add(path)
    if all(len(ours[path].shape) < 2 for path in taken):
        raise ValueError(
            "A model that starts from a trained one must have the same sizes. "
            f"Received: {_sizes(new)} for {_sizes(old)}"
        )
    return TakenWeights(
        taken={path: _size(ours[path]) for path in ours if path in taken},
        left={path: _size(theirs[path]) for path in theirs if path not in taken},
        new={path: _size(ours[path]) for path in ours if path not in taken},
    )


@contextlib.contextmanager
def sums_in_float32(model: keras.Model) -> Iterator[None]:
    """Context in which Keras saves matrices with LoRA in the variable dtype.

    Otherwise Keras rounds them to the compute dtype, even where nothing was added.
    """
    policies = {
        layer: layer.dtype_policy
        for layer in nested_layers(model)
        if getattr(layer, "lora_enabled", False) and layer.quantization_mode is None
    }
    try:
        for layer in policies:
            layer.dtype_policy = layer.variable_dtype
        yield
    finally:
        for layer, policy in policies.items():
            layer.dtype_policy = policy


def has_same_architecture(first: keras.Model, second: keras.Model) -> bool:
    """Whether two models have weights of the same shapes and the same computation."""
    shapes = (
        {path: tuple(weight.shape) for path, weight in by_path(model.weights).items()}
        for model in (first, second)
    )
    return next(shapes) == next(shapes) and not any(_changed_attention(first, second))


def _changed_attention(
    old: keras.Model, new: keras.Model
) -> Iterator[tuple[BaseAttention, BaseAttention]]:
    """The attention layers of two models that have the same place but differ."""
    before = {_place(layer.path): layer for layer in _attention_layers(old)}
    for layer in _attention_layers(new):
        other = before.get(_place(layer.path))
        if other is not None and _meaning(other) != _meaning(layer):
            yield other, layer


def _attention_layers(model: keras.Model) -> list[BaseAttention]:
    return [layer for layer in nested_layers(model) if isinstance(layer, BaseAttention)]


def _meaning(layer: BaseAttention) -> tuple[type, dict[str, Any]]:
    config = layer.get_config()
    return type(layer), {k: v for k, v in config.items() if k not in _IRRELEVANT}


def by_path(weights: Iterable[Any]) -> dict[str, Any]:
    """Weights by their paths, without the name of the model."""
    return {_place(weight.path): weight for weight in weights}


def _place(path: str) -> str:
    """A path without the name of the model, which differs from process to process."""
    return path.partition("/")[2]


def _sizes(model: keras.Model) -> str:
    """The largest matrix of a model, by its path and shape."""
    largest = max(model.weights, key=_size)
    return f"{_place(largest.path)} {list(largest.shape)}"


def _size(weight: Any) -> int:
    return int(keras.ops.size(weight))


def _sum(found: dict[str, int], part: str) -> int:
    return sum(size for path, size in found.items() if path.partition("/")[0] == part)
