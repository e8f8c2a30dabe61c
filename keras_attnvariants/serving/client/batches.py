"""Requests that are split into batches, and their replies put together again."""

import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature

Arrays = Mapping[str, Array]

# What exported graphs, and the batching of TensorFlow Serving before them, say.
_LIMIT = re.compile(
    r"at most (\d+) sentences \(max_batch\)|maximum input batch size (\d+)"
)


def checked_inputs(signature: Signature, inputs: Mapping[str, object]) -> Arrays:
    """The inputs as arrays of the types that the signature wants.

    Raises:
        ValueError: one is missing, unknown, of another type or rank, or they have
            different numbers of rows.
    """
    if inputs.keys() != signature.inputs.keys():
        raise ValueError(
            f"Signature {signature.name!r} takes {_listed(signature.inputs)}. "
            f"Received: {_listed(inputs)}"
        )
    arrays: dict[str, Array] = {}
    for name, spec in signature.inputs.items():
        arrays[name] = spec.array(name, inputs[name])
        if spec.shape is not None and arrays[name].ndim != len(spec.shape):
            raise ValueError(
                f"`{name}` must have {len(spec.shape)} axes. Received: an array of "
                f"shape {arrays[name].shape}"
            )
    rows = {
        name: len(arrays[name])
        for name, spec in signature.inputs.items()
        if spec.is_batched and arrays[name].ndim
    }
    if len(set(rows.values())) > 1:
        raise ValueError(f"All inputs must have equally many rows. Received: {rows}")
    return arrays


def batches(
    signature: Signature, inputs: Arrays, size: int
) -> Iterator[tuple[Array, dict[str, Array]]]:
    """Batches of rows that are about equally long, and the rows that they hold.

    A batch is as slow as its longest row. Inputs without a batch axis go with every
    batch.
    """
    batched = [name for name, spec in signature.inputs.items() if spec.is_batched]
    order = np.argsort(_costs([inputs[name] for name in batched]), kind="stable")
    for start in range(0, max(len(order), 1), size):
        rows = order[start : start + size]
        part = {name: inputs[name][rows] for name in batched}
        yield rows, {**inputs, **part}


def limit_in(message: str) -> int:
    """The sentences that a server accepts, as its refusal says; 0 if it does not."""
    found = _LIMIT.search(message)
    return int(found[1] or found[2]) if found else 0


def joined(rows: Sequence[Array], parts: Sequence[Arrays]) -> dict[str, Array]:
    """The outputs of all batches in the order of the inputs.

    Axes after the first may differ between batches: they are padded with zeros or
    empty strings to the longest.

    Raises:
        ServingError: a batch has other numbers of rows or axes than it should have.
    """
    return {
        name: _joined(name, rows, [part[name] for part in parts]) for name in parts[0]
    }


def _joined(name: str, rows: Sequence[Array], parts: Sequence[Array]) -> Array:
    """The same for one output."""
    for indices, part in zip(rows, parts, strict=True):
        if part.ndim != parts[0].ndim or part.shape[:1] != indices.shape:
            raise ServingError(
                f"`{name}` has the shape {part.shape} for {len(indices)} inputs"
            )
    widths = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
    shape = (sum(len(indices) for indices in rows), *widths)
    empty = "" if parts[0].dtype == object else 0
    whole = np.full(shape, empty, parts[0].dtype)
    for indices, part in zip(rows, parts, strict=True):
        place: Any = (indices, *(slice(size) for size in part.shape[1:]))
        whole[place] = part
    return whole


def _costs(inputs: Sequence[Array]) -> Array:
    """What to sort rows by: the bytes of their texts, else the lengths given."""
    texts = [array for array in inputs if array.dtype == object and array.ndim == 1]
    if texts:
        return np.sum([[len(text) for text in array] for array in texts], axis=0)
    lengths = [a for a in inputs if a.ndim == 1 and np.issubdtype(a.dtype, np.integer)]
    if lengths:
        return np.sum(lengths, axis=0)
    return np.zeros(len(inputs[0]) if inputs else 1)


def _listed(names: Mapping[str, object]) -> str:
    """Names for a message."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"
