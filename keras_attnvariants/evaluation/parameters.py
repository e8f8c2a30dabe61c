"""Parameters of a model by place and kind of layer."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
from rich.table import Table

from keras_attnvariants.attention import BaseAttention

PLACES = ("embeddings", "encoder", "decoder", "other")
KINDS = ("embeddings", "attention", "feed-forward", "normalization", "other")

# The end of a class name says what the layer is for, in Keras as well as here.
KIND_OF_CLASS = {
    "Attention": "attention",
    "Embedding": "embeddings",
    "Embeddings": "embeddings",
    "Positions": "embeddings",
    "FeedForward": "feed-forward",
    "Normalization": "normalization",
}


@dataclass(frozen=True)
class ParameterSummary:
    """Numbers of parameters; a weight that several layers share is counted once.

    Attributes:
        counts: number of parameters by place, one of `PLACES`, and kind, one of
            `KINDS`; zeros are left out.
        trainable: how many of all parameters are trainable.
    """

    counts: dict[tuple[str, str], int]
    trainable: int

    @property
    def total(self) -> int:
        """Number of parameters of the whole model."""
        return sum(self.counts.values())

    @property
    def by_place(self) -> dict[str, int]:
        """Numbers of parameters in embeddings, encoder, decoder and elsewhere."""
        return {place: self.count(place=place) for place in PLACES}

    @property
    def by_kind(self) -> dict[str, int]:
        """Numbers of parameters by kind of layer, one of `KINDS`."""
        return {kind: self.count(kind=kind) for kind in KINDS}

    def count(self, place: str | None = None, kind: str | None = None) -> int:
        """Number of parameters in one place, of one kind, or both."""
        return sum(
            size
            for (its_place, its_kind), size in self.counts.items()
            if place in (None, its_place) and kind in (None, its_kind)
        )

    def to_dict(self) -> dict[str, int | dict[str, int]]:
        """A JSON-able dict."""
        return {
            "total": self.total,
            "trainable": self.trainable,
            "by_place": self.by_place,
            "by_kind": self.by_kind,
        }

    def __rich__(self) -> Table:
        table = Table("Parameters", show_footer=True)
        table.columns[0].footer = "total"
        for place in PLACES:
            table.add_column(place, f"{self.count(place):,}", justify="right")
        table.add_column("total", f"{self.total:,}", justify="right")
        for kind in KINDS:
            cells = [f"{self.count(place, kind):,}" for place in PLACES]
            table.add_row(kind, *cells, f"{self.count(kind=kind):,}")
        table.caption = f"{self.trainable:,} of {self.total:,} are trainable"
        return table


def parameter_summary(model: keras.Model) -> ParameterSummary:
    """Counts the parameters of a model by place and by kind.

    The place follows from the names of attributes, layers and classes
    (`encoder_blocks`, `DecoderBlock`, …), the kind from the class: every
    `BaseAttention`, and any layer whose class name ends in `Attention`, `Embedding`,
    `FeedForward`, `Normalization`, …, with all layers inside it.

    Args:
        model: a built Keras model or layer. Its weights need no values.

    Returns:
        A `ParameterSummary`, shown as a table by `rich.print`.

    Raises:
        ValueError: the model is not built and has no weights yet.

    Example:

    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    >>> parameter_summary(model).total
    15
    """
    if not isinstance(model, keras.layers.Layer) or not model.built:
        raise ValueError(
            f"`model` must be a built Keras model or layer. Received: {model!r}"
        )
    counts: Counter[tuple[str, str]] = Counter()
    for weight, place, kind in owned_weights(model, None, None, set()):
        counts[place, kind] += int(np.prod(weight.shape))
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    return ParameterSummary(dict(counts), trainable)


def owned_weights(
    layer: keras.layers.Layer, place: str | None, kind: str | None, seen: set[int]
) -> Iterator[tuple[keras.Variable, str, str]]:
    """Each weight once, with its place and kind.

    Args:
        layer: a built layer.
        place, kind: those of the layers around it, if known.
        seen: ids of layers and weights that were found before; is added to.
    """
    seen.add(id(layer))
    for name, child in children(layer):
        if id(child) not in seen:
            yield from owned_weights(
                child, place or place_of(name, child), kind or kind_of(child), seen
            )
    for weight in layer.weights:
        if id(weight) not in seen:
            seen.add(id(weight))
            yield weight, place or "other", kind or "other"


def children(
    layer: keras.layers.Layer,
) -> Iterator[tuple[str, keras.layers.Layer]]:
    """The layers directly inside a layer, with the attribute that holds them."""
    # The names of public attributes say more than those of private ones. The layers of
    # a functional model have none.
    attributes = sorted(vars(layer).items(), key=lambda item: item[0].startswith("_"))
    for name, value in [*attributes, ("", getattr(layer, "layers", ()))]:
        if isinstance(value, dict):
            value = list(value.values())
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, keras.layers.Layer):
                yield name, entry


def place_of(attribute: str, layer: keras.layers.Layer) -> str | None:
    """Embeddings, encoder or decoder, if a name says so."""
    if kind_of(layer) == "embeddings":
        return "embeddings"
    names = f"{attribute} {layer.name} {type(layer).__name__}".lower()
    return next((place for place in ("encoder", "decoder") if place in names), None)


def kind_of(layer: keras.layers.Layer) -> str | None:
    """The purpose of a layer, if its class says so."""
    if isinstance(layer, BaseAttention):
        return "attention"
    name = type(layer).__name__
    ends = KIND_OF_CLASS.items()
    return next((kind for end, kind in ends if name.endswith(end)), None)
