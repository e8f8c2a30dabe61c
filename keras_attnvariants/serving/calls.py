"""What a call in Python sends to an exported model."""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.serving.client.tensors import TensorSpec


def signatures_of(info: Mapping[str, Any]) -> dict[str, Signature]:
    """The signatures that `model_info.json` describes, by name."""

    def specs(tensors: Mapping[str, Any]) -> dict[str, TensorSpec]:
        return {
            name: TensorSpec(tensor["dtype"], tuple(tensor["shape"]))
            for name, tensor in tensors.items()
        }

    return {
        name: Signature(name, specs(found["inputs"]), specs(found["outputs"]))
        for name, found in info["signatures"].items()
    }


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
