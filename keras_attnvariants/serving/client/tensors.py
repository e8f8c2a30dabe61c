"""Arrays as messages of TensorFlow and back, and what signatures say about them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.messages import TensorProto
from keras_attnvariants.serving.messages import TensorShapeProto

Array = npt.NDArray[Any]

# The name, the number in TensorFlow, and the field that holds values one by one.
_TYPES = (
    ("float32", 1, "float_val"),
    ("float64", 2, "double_val"),
    ("int32", 3, "int_val"),
    ("string", 7, "string_val"),
    ("int64", 9, "int64_val"),
    ("bool", 10, "bool_val"),
)
_NUMBERS = {name: number for name, number, _ in _TYPES}
_FIELDS = {number: (name, field) for name, number, field in _TYPES}


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
        """A value as an array of this type; texts become bytes.

        Raises:
            ValueError: it has another type, or is not rectangular.
        """
        if self.dtype == "string":
            return _strings(name, value)
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


def spec_of(info: Any) -> TensorSpec:
    """What a `TensorInfo` says."""
    name, _ = _FIELDS.get(info.dtype, (f"type {info.dtype} of TensorFlow", ""))
    if info.tensor_shape.unknown_rank:
        return TensorSpec(name, None)
    sizes = [dim.size for dim in info.tensor_shape.dim]
    return TensorSpec(name, tuple(None if size < 0 else size for size in sizes))


def to_proto(array: Array) -> Any:
    """An array as a `TensorProto`; one of objects holds bytes."""
    shape = TensorShapeProto(dim=[{"size": size} for size in array.shape])
    if array.dtype == object:
        return TensorProto(
            dtype=_NUMBERS["string"], tensor_shape=shape, string_val=array.ravel()
        )
    little = array.astype(array.dtype.newbyteorder("<"))
    return TensorProto(
        dtype=_NUMBERS[array.dtype.name],
        tensor_shape=shape,
        tensor_content=little.tobytes(),
    )


def from_proto(name: str, proto: Any) -> Array:
    """A `TensorProto` as an array; strings become texts.

    Raises:
        ServingError: its type is unknown here, or values are missing.
    """
    if proto.dtype not in _FIELDS:
        raise ServingError(f"`{name}` has a type that is unknown here: {proto.dtype}")
    dtype, field = _FIELDS[proto.dtype]
    shape = [dim.size for dim in proto.tensor_shape.dim]
    if dtype == "string":
        values = np.empty(len(proto.string_val), object)
        values[:] = [text.decode("utf-8", "replace") for text in proto.string_val]
    elif proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, np.dtype(dtype).newbyteorder("<"))
        values = values.astype(dtype)
    else:
        values = np.array(getattr(proto, field), dtype)
    if values.size != math.prod(shape):
        raise ServingError(
            f"`{name}` has {values.size} values for the shape {shape}: the reply is "
            "damaged"
        )
    return values.reshape(shape)


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
