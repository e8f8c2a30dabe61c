"""Parameters of a model by place and kind of layer."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import keras
import numpy as np
from rich.jupyter import JupyterMixin
from rich.table import Table

# Patterns for place and kind in the names of layers, both Keras' and ours.
PLACES = {
    "embeddings": "embedding|position",
    "encoder": "encoder",
    "decoder": "decoder",
    "other": "$",
}
KINDS = {
    "embeddings": "embedding|position",
    "attention": "attention",
    "feed-forward": "feed_forward",
    "normalization": "norm",
    "other": "$",
}


@dataclass(frozen=True)
class ParameterSummary(JupyterMixin):
    """Numbers of parameters; a weight that several layers share is counted once.

    Attributes:
        counts: number of parameters by place, one of `PLACES`, and kind, one of
            `KINDS`; zeros are left out.
        trainable: number of trainable parameters.
    """

    counts: dict[tuple[str, str], int]
    trainable: int

    @property
    def total(self) -> int:
        """Number of parameters of the whole model."""
        return sum(self.counts.values())

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
            "by_place": {place: self.count(place=place) for place in PLACES},
            "by_kind": {kind: self.count(kind=kind) for kind in KINDS},
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

    Place and kind follow from the names of the layers around a weight, which Keras
    makes from their classes: `encoder_0/self_attention/query/kernel`. The first
    matching name decides.

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
    for weight in model.weights:
        path = weight.path.removeprefix(f"{model.name}/")
        kind = first_match(path, KINDS)
        place = kind if kind == "embeddings" else first_match(path, PLACES)
        counts[place, kind] += int(np.prod(weight.shape))
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    return ParameterSummary(dict(counts), trainable)


def first_match(path: str, patterns: Mapping[str, str]) -> str:
    """The name of the pattern that occurs first in the path of a weight."""
    found = {name: re.search(pattern, path) for name, pattern in patterns.items()}
    first = {name: match.start() for name, match in found.items() if match}
    return min(first, key=first.__getitem__)
