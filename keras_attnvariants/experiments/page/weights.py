"""Attention weights in a few bytes: one for each, compressed, as text."""

import base64
import zlib
from collections.abc import Iterable
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from keras_attnvariants.experiments.result_tables import AttentionLayer
from keras_attnvariants.experiments.results import ComparisonResult

# What a weight of 1 is stored as.
UINT8_MAX = 255


def quantized(weights: Sequence[Any]) -> np.ndarray:
    """Weights from 0 to 1 as bytes; each is within 1/510 of what it was.

    Args:
        weights: nested sequences of any depth.
    """
    values = np.nan_to_num(np.asarray(weights, "float64"))
    return np.rint(UINT8_MAX * np.clip(values, 0, 1)).astype("uint8")


def packed(blocks: Iterable[np.ndarray]) -> str:
    """Bytes one after another, compressed (zlib), in base64."""
    data = b"".join(block.tobytes() for block in blocks)
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def browsable(
    result: ComparisonResult, most: int | None = None
) -> list[dict[str, Any]]:
    """What the browser of attention shows, as values of JSON.

    Args:
        result: the comparison.
        most: sentences of a system at most; `None` for all.

    Returns:
        For each system its name and its sentences, each with `text`, `axes` (lists of
        tokens), `layers` (whose `rows` and `columns` are numbers of axes) and `data`:
        the weights of the layers in turn, `[heads, rows, columns]`.
    """
    texts = {(s.test_set, s.number): s.source for s in result.samples}
    found = []
    for system in result.systems:
        own = [layer for layer in result.attention if layer.system == system.name]
        own.sort(key=lambda layer: (layer.test_set, layer.number))
        groups = groupby(own, lambda layer: (layer.test_set, layer.number))
        sentences = [sentence(texts.get(key, ""), list(rows)) for key, rows in groups]
        if sentences:
            found.append({"name": system.name, "sentences": sentences[:most]})
    return found


def sentence(text: str, layers: Sequence[AttentionLayer]) -> dict[str, Any]:
    """The weights of all layers on a sentence."""
    axes: dict[tuple[str, ...], int] = {}

    def axis(tokens: Sequence[str]) -> int:
        return axes.setdefault(tuple(tokens), len(axes))

    described = [
        {
            "place": layer.place,
            "layer": layer.layer,
            "heads": len(layer.heads),
            "rows": axis(layer.queries),
            "columns": axis(layer.keys),
            "query": layer.query_order,
            "key": layer.key_order,
            "quadrant": layer.is_quadrant,
        }
        for layer in layers
    ]
    return {
        "text": text or " ".join(next(iter(axes))),
        "layers": described,
        "axes": [list(tokens) for tokens in axes],
        "data": packed(quantized(layer.heads) for layer in layers),
    }
