"""Calls of the signatures of an exported model: checked, split into batches, joined.

They are the same for a model in this process and for one on a server, and need no
TensorFlow.
"""

import math
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

# What exported graphs, and the batching of TensorFlow Serving before them, say.
_LIMIT = re.compile(
    r"at most (\d+) sentences \(max_batch\)|maximum input batch size (\d+)"
)


@dataclass(frozen=True)
class TensorSpec:
    """Type and shape of an input or output.

    Attributes:
        dtype: `"string"`, or its name in NumPy.
        shape: `None` for a size that varies; `None` as a whole if nothing is known.
    """

    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def is_batched(self) -> bool:
        """Whether there is one value, or row, per sentence."""
        return self.shape is None or len(self.shape) > 0

    def array(self, name: str, value: Any) -> Array:
        """Convert an input to an array of this type and rank; texts become bytes.

        Raises:
            ValueError: it has another type or rank, or is not rectangular.
        """
        is_text = self.dtype == "string"
        array = _strings(name, value) if is_text else self._numbers(name, value)
        if self.shape is not None and array.ndim != len(self.shape):
            raise ValueError(
                f"`{name}` must have {len(self.shape)} axes. Received: an array of "
                f"shape {array.shape}"
            )
        return array

    def check(self, name: str, array: Array, rows: int) -> None:
        """Check an output for so many sentences.

        Raises:
            ValueError: it has another type, rank or number of rows.
        """
        dtype = np.dtype(object if self.dtype == "string" else self.dtype)
        rank = array.ndim if self.shape is None else len(self.shape)
        if array.dtype != dtype or array.ndim != rank or array.shape[:1] != (rows,):
            raise ValueError(
                f"`{name}` must be {self.dtype} with {rank} axes and {rows} rows. "
                f"Received: {array.dtype.name} of shape {array.shape}"
            )

    def _numbers(self, name: str, value: Any) -> Array:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"`{name}` must have rows of equal length.") from error
        if array.size and not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise ValueError(
                f"`{name}` must be {self.dtype}. Received: {array.dtype.name}"
            )
        return array.astype(self.dtype)


@dataclass(frozen=True)
class Signature:
    """A function of an exported model.

    Attributes:
        name: such as `serving_default`.
        inputs, outputs: type and shape, by name.
    """

    name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


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


def chosen(what: str, name: str, choices: Mapping[str, T]) -> T:
    """The choice of a name.

    Raises:
        ValueError: there is none; the message lists those that there are.
    """
    if name in choices:
        return choices[name]
    names = ", ".join(repr(choice) for choice in sorted(choices))
    raise ValueError(f"`{what}` must be one of {names}. Received: {name!r}")


@dataclass(frozen=True)
class Call:
    """A call whose inputs were checked; see `checked_call`.

    Attributes:
        signature: the function that is called.
        inputs: an array for each input.
        outputs: names of the outputs that are wanted.
    """

    signature: Signature
    inputs: Arrays
    outputs: Sequence[str]

    def batches(self, size: int) -> Iterator[tuple[Array, Arrays]]:
        """Split the call into batches: the places of their rows, and the inputs there.

        Rows of about equal length go together, because a batch is as slow as its
        longest. Inputs without a batch axis go with every batch.
        """
        specs = self.signature.inputs
        batched = {n: array for n, array in self.inputs.items() if specs[n].is_batched}
        order = np.argsort(_costs(list(batched.values())), kind="stable")
        for start in range(0, max(len(order), 1), size):
            rows = order[start : start + size]
            part = {name: array[rows] for name, array in batched.items()}
            yield rows, {**self.inputs, **part}

    def joined(
        self, rows: Sequence[Array], parts: Sequence[Arrays]
    ) -> dict[str, Array]:
        """The outputs of all batches in the order of the inputs.

        Axes after the first may differ between batches: they are padded with zeros or
        empty strings to the longest.

        Args:
            rows: the places of the rows of each batch.
            parts: its outputs.

        Raises:
            ValueError: an output is not as the signature says, or has another number
                of rows.
        """
        for name in self.outputs:
            spec = self.signature.outputs[name]
            for places, part in zip(rows, parts, strict=True):
                spec.check(name, part[name], len(places))
        return {
            name: _joined(rows, [part[name] for part in parts]) for name in self.outputs
        }


def checked_call(
    signature: Signature, inputs: Mapping[str, Any], outputs: Sequence[str] | None
) -> Call:
    """A call with its inputs as arrays of the types that the signature wants.

    Args:
        signature: what to call.
        inputs: values by name.
        outputs: names of those that are wanted; `None` for all.

    Raises:
        ValueError: there is no such output, or an input is missing, unknown, of
            another type or rank, or of another number of rows than the others.
    """
    names = list(signature.outputs if outputs is None else outputs)
    for name in names:
        chosen("outputs", name, signature.outputs)
    if inputs.keys() != signature.inputs.keys():
        raise ValueError(
            f"Signature {signature.name!r} takes {_names(signature.inputs)}. "
            f"Received: {_names(inputs)}"
        )
    arrays = {
        name: spec.array(name, inputs[name]) for name, spec in signature.inputs.items()
    }
    rows = {
        name: len(arrays[name])
        for name, spec in signature.inputs.items()
        if spec.is_batched and arrays[name].ndim
    }
    if len(set(rows.values())) > 1:
        raise ValueError(f"All inputs must have equally many rows. Received: {rows}")
    return Call(signature, arrays, names)


def limit_in(message: str) -> int:
    """The number of sentences that a server accepts, from its refusal; 0 if unsaid."""
    found = _LIMIT.search(message)
    return int(found[1] or found[2]) if found else 0


def _joined(rows: Sequence[Array], parts: Sequence[Array]) -> Array:
    widths = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
    shape = (sum(len(indices) for indices in rows), *widths)
    empty = "" if parts[0].dtype == object else 0
    whole = np.full(shape, empty, parts[0].dtype)
    for indices, part in zip(rows, parts, strict=True):
        place: Any = (indices, *(slice(size) for size in part.shape[1:]))
        whole[place] = part
    return whole


def _costs(inputs: Sequence[Array]) -> Array:
    """The number to sort each row by: the bytes of its texts, or its lengths."""
    texts = [array for array in inputs if array.dtype == object and array.ndim == 1]
    if texts:
        return np.sum([[len(text) for text in array] for array in texts], axis=0)
    lengths = [a for a in inputs if a.ndim == 1 and np.issubdtype(a.dtype, np.integer)]
    if lengths:
        return np.sum(lengths, axis=0)
    return np.zeros(len(inputs[0]) if inputs else 1)


def _strings(name: str, value: Any) -> Array:
    """Texts as an array of bytes; what UTF-8 cannot express becomes a question mark."""
    array = np.asarray(value, object)
    flat = np.empty(array.size, object)
    for index, text in enumerate(array.ravel()):
        if isinstance(text, str):
            text = text.encode("utf-8", "replace")
        if not isinstance(text, bytes):
            raise ValueError(f"`{name}` must hold strings. Received: {text!r:.80}")
        flat[index] = text
    return flat.reshape(array.shape)


def _names(names: Mapping[str, object]) -> str:
    """Names for a message."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"
