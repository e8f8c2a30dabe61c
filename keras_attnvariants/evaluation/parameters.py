"""Where the parameters of a model are."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
from rich.table import Table

from keras_attnvariants.attention import BaseAttention

PLACES = ("embeddings", "encoder", "decoder", "other")
KINDS = ("embeddings", "attention", "feed-forward", "normalization", "other")

# How the name of a class ends tells what it is for, in Keras as well as here.
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
    """Numbers of parameters; a matrix that several layers share counts once.

    Attributes:
        counts: parameters by (place, kind), of which there are `PLACES` and
            `KINDS`; zeros are left out.
        trainable: how many of all are trained.
    """

    counts: dict[tuple[str, str], int]
    trainable: int

    @property
    def total(self) -> int:
        """The parameters of the whole model."""
        return sum(self.counts.values())

    @property
    def by_place(self) -> dict[str, int]:
        """Parameters of the embeddings, the encoder, the decoder and the rest."""
        return {place: self.count(place=place) for place in PLACES}

    @property
    def by_kind(self) -> dict[str, int]:
        """Parameters of the embeddings, of attention, feed-forward and the rest."""
        return {kind: self.count(kind=kind) for kind in KINDS}

    def count(self, place: str | None = None, kind: str | None = None) -> int:
        """Parameters in one place, of one kind, or both."""
        return sum(
            size
            for (its_place, its_kind), size in self.counts.items()
            if place in (None, its_place) and kind in (None, its_kind)
        )

    def to_dict(self) -> dict[str, int | dict[str, int]]:
        """A form that JSON can hold."""
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
        table.caption = f"{self.trainable:,} of {self.total:,} are trained"
        return table


def parameter_summary(model: keras.Model) -> ParameterSummary:
    """Counts the parameters of a model by place and by kind.

    The place is told by the names of attributes, layers and classes
    (`encoder_blocks`, `DecoderBlock`, …), the kind by the class: any layer
    called `…Attention`, `…Embedding`, `…FeedForward` or `…Normalization`, with
    all that is inside it, and every `BaseAttention`.

    Args:
        model: any built Keras model or layer.

    Returns:
        A `ParameterSummary`, printed as a table by `rich.print`.

    Raises:
        ValueError: the model was never built and has no weights yet.

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
    """Each weight once, with the outermost place and kind that a name tells."""
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
    attributes = [(n, v) for n, v in vars(layer).items() if not n.startswith("_")]
    # The layers of a functional model are held by no attribute of their own.
    for name, value in [*attributes, ("", layer._layers)]:
        if isinstance(value, dict):
            value = list(value.values())
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, keras.layers.Layer):
                yield name, entry


def place_of(attribute: str, layer: keras.layers.Layer) -> str | None:
    """Embeddings, encoder or decoder, if a name tells."""
    if kind_of(layer) == "embeddings":
        return "embeddings"
    names = f"{attribute} {layer.name} {type(layer).__name__}".lower()
    return next((place for place in ("encoder", "decoder") if place in names), None)


def kind_of(layer: keras.layers.Layer) -> str | None:
    """What a layer is for, if its class tells."""
    if isinstance(layer, BaseAttention):
        return "attention"
    name = type(layer).__name__
    ends = KIND_OF_CLASS.items()
    return next((kind for end, kind in ends if name.endswith(end)), None)
