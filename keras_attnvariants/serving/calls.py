"""What a call in Python sends to an exported model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

if TYPE_CHECKING:
    from keras_attnvariants.serving.client.tensors import TensorSpec


def listed(name: str, texts: Sequence[str]) -> list[str]:
    """Texts as a list.

    Raises:
        TypeError: they are one string.
    """
    if isinstance(texts, str):
        raise TypeError(f"`{name}` must be a list of strings. Received: {texts!r}")
    return list(texts)


def column(name: str, value: Any, count: int, spec: TensorSpec) -> list[Any]:
    """An option of each of `count` sentences, as a signature takes it.

    Raises:
        ValueError: it is a list of another length.
    """
    is_one = value is None or np.ndim(value) == 0
    values = [value] * count if is_one else list(value)
    if len(values) != count:
        raise ValueError(
            f"`{name}` must be one, or one for each text ({count}). "
            f"Received: {len(values)}"
        )
    omitted = math.nan if spec.dtype.startswith("float") else -1
    return [omitted if each is None else each for each in values]
