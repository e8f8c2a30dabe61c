"""Calls of an exported model's signatures: input checks, batches, joined outputs.

They are the same for a model in this process and for one on a server, and need no
TensorFlow.
"""

import math
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import one_for_each

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

# How exported graphs, and TensorFlow Serving's batching, state the limit in an error.
_LIMIT = re.compile(
    r"at most (\d+) sentences \(max_batch\)|maximum input batch size (\d+)"
)


@dataclass(frozen=True)
class TensorSpec:
    """Type and shape of an input or output, which has one row per sentence.

    Attributes:
        dtype: `"string"`, or a dtype's name in NumPy.
        shape: `None` for a size that varies.
    """

    dtype: str
    shape: tuple[int | None, ...]

    @property
    def array_type(self) -> np.dtype[Any]:
        """The type of arrays; `object` for texts.

        Raises:
            ValueError: a server reports a type that NumPy does not have.
        """
        try:
            return np.dtype(object if self.dtype == "string" else self.dtype)
        except TypeError:
            raise ValueError(
                f"NumPy has no such type. Received: {self.dtype}"
            ) from None

    def array(self, name: str, value: Any) -> Array:
        """Converts an input to an array of this type and rank; texts become bytes.

        Raises:
            ValueError: it has another type or rank, or is not rectangular.
        """
        is_text = self.dtype == "string"
        array = _strings(name, value) if is_text else self._numbers(name, value)
        if array.ndim != len(self.shape):
            raise ValueError(
                f"`{name}` must have {len(self.shape)} axes. Received: an array of "
                f"shape {array.shape}"
            )
        return array

    def check(self, name: str, array: Array, rows: int) -> None:
        """Checks an output that should have `rows` rows.

        Raises:
            ValueError: it has another type, rank or number of rows.
        """
        rank = len(self.shape)
        found = array.dtype, array.ndim, array.shape[:1]
        if found != (self.array_type, rank, (rows,)):
            raise ValueError(
                f"`{name}` must be {self.dtype} with {rank} axes and {rows} rows. "
                f"Received: {array.dtype.name} of shape {array.shape}"
            )

    def _numbers(self, name: str, value: Any) -> Array:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ValueError(f"`{name}` must have rows of equal length.") from error
        if array.size and not np.can_cast(array.dtype, self.array_type, "same_kind"):
            raise ValueError(
                f"`{name}` must be {self.dtype}. Received: {array.dtype.name}"
            )
        return array.astype(self.array_type)


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


def option_values(name: str, value: Any, count: int, spec: TensorSpec) -> list[Any]:
    """The values of an option for `count` sentences, as a signature takes them.

    Raises:
        ValueError: it is a list whose length is not `count`.
    """
    is_one = value is None or np.ndim(value) == 0
    values = one_for_each(name, [value] * count if is_one else list(value), count)
    omitted = {"string": "", "bool": False, "float32": math.nan}.get(spec.dtype, -1)
    return [omitted if each is None else each for each in values]


@dataclass(frozen=True)
class Call:
    """A call whose inputs were checked; see `checked_call`.

    Attributes:
        signature: the function that is called.
        inputs: an array for each input.
        outputs: names of the outputs to return.
    """

    signature: Signature
    inputs: Arrays
    outputs: Sequence[str]

    @property
    def bytes_of_row(self) -> int:
        """An upper estimate of the bytes that the longest row takes in JSON."""
        total = 1
        for array in self.inputs.values():
            if array.dtype == object:  # in Base64, or with escapes
                total += 2 * max(map(len, array.ravel()), default=0)
            else:
                total += 24 * math.prod(array.shape[1:])
        return total

    def batches(self, size: int) -> Iterator[tuple[Array, Arrays]]:
        """Splits the call into batches: indices of rows, and the inputs of these rows.

        Rows of about equal length go together, because a batch takes as long as its
        longest row.
        """
        order = np.argsort(_costs(self.inputs.values()), kind="stable")
        for start in range(0, max(len(order), 1), size):
            rows = order[start : start + size]
            yield rows, {name: array[rows] for name, array in self.inputs.items()}

    def joined(
        self, rows: Sequence[Array], parts: Sequence[Arrays]
    ) -> dict[str, Array]:
        """The outputs of all batches in the order of the inputs.

        Axes after the first may differ between batches: they are padded with zeros or
        empty strings to the longest.

        Args:
            rows: the indices of the rows of each batch.
            parts: the outputs of each batch.

        Raises:
            ValueError: an output differs from the signature, or has another number of
                rows.
        """
        whole = {}
        for name in self.outputs:
            spec = self.signature.outputs[name]
            for places, part in zip(rows, parts, strict=True):
                spec.check(name, part[name], len(places))
            widths = np.max([part[name].shape[1:] for part in parts], axis=0)
            shape = sum(map(len, rows)), *widths.astype(int)
            empty = "" if spec.dtype == "string" else 0
            whole[name] = np.full(shape, empty, spec.array_type)
            for places, part in zip(rows, parts, strict=True):
                place: Any = places, *map(slice, part[name].shape[1:])
                whole[name][place] = part[name]
        return whole


def checked_call(
    signature: Signature, inputs: Mapping[str, Any], outputs: Sequence[str] | None
) -> Call:
    """A call whose inputs were checked and converted to the types of the signature.

    Args:
        signature: the signature to call.
        inputs: values by name.
        outputs: names of the outputs to return; `None` for all.

    Raises:
        ValueError: there is no such output, or an input is missing or unknown, has the
            wrong type or rank, or does not have as many rows as the others.
    """
    if inputs.keys() != signature.inputs.keys():
        raise ValueError(
            f"Signature {signature.name!r} takes {_names(signature.inputs)}. "
            f"Received: {_names(inputs)}"
        )
    names = list(signature.outputs if outputs is None else outputs)
    for name in names:
        check_choice("outputs", name, sorted(signature.outputs))
    specs = signature.inputs.items()
    arrays = {name: spec.array(name, inputs[name]) for name, spec in specs}
    rows = {name: len(array) for name, array in arrays.items()}
    if len(set(rows.values())) > 1:
        raise ValueError(
            f"All inputs must have the same number of rows. Received: {rows}"
        )
    return Call(signature, arrays, names)


def limit_in(message: str) -> int:
    """The batch limit that a server's refusal states, or 0."""
    found = _LIMIT.search(message)
    return int(found[1] or found[2]) if found else 0


def _costs(inputs: Iterable[Array]) -> Array:
    """The sort key of each row: the bytes of its texts, or its length."""
    columns = [array for array in inputs if array.ndim == 1]
    texts = [[len(t) for t in array] for array in columns if array.dtype == object]
    costs: list[Any] = texts or [a for a in columns if a.dtype.kind == "i"]
    return np.sum(costs, axis=0)


def _strings(name: str, value: Any) -> Array:
    """Texts as an array of UTF-8; what cannot be encoded becomes question marks."""

    def encoded(text: Any) -> bytes:
        if isinstance(text, str):
            return text.encode("utf-8", "replace")
        if isinstance(text, bytes):
            return text
        raise ValueError(f"`{name}` must hold strings. Received: {text!r:.80}")

    return np.asarray(np.frompyfunc(encoded, 1, 1)(np.asarray(value, object)), object)


def _names(names: Mapping[str, object]) -> str:
    """Names, formatted for a message."""
    return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"
