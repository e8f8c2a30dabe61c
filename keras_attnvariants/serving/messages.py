"""Writes and reads the messages of TensorFlow Serving without TensorFlow.

Importing the packages that define them imports TensorFlow, which takes seconds.
`messages.textproto` declares the fields that we use; protobuf keeps the others.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.utils.protos import message_classes

# The number of each type in messages, its name in NumPy, and the field that holds its
# values one by one.
_TYPES = {
    1: ("float32", "float_val"),
    2: ("float64", "double_val"),
    3: ("int32", "int_val"),
    7: ("string", "string_val"),
    9: ("int64", "int64_val"),
    10: ("bool", "bool_val"),
}
_NUMBERS = {name: number for number, (name, _) in _TYPES.items()}


protos: Any = message_classes(Path(__file__).with_name("messages.textproto"))


def predict_request(
    spec: Any, signature: str, inputs: Mapping[str, Array], outputs: Sequence[str] = ()
) -> Any:
    """A `PredictRequest` for the named outputs, by default all."""
    request = protos.PredictRequest(model_spec=spec, output_filter=outputs)
    request.model_spec.signature_name = signature
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(to_proto(array))
    return request


def signatures_of(definitions: Any) -> dict[str, Signature]:
    """The signatures in a `SignatureDefMap`, without TensorFlow's own."""
    return {
        name: Signature(
            name,
            {key: _spec(info) for key, info in definition.inputs.items()},
            {key: _spec(info) for key, info in definition.outputs.items()},
        )
        for name, definition in definitions.signature_def.items()
        if not name.startswith("__")
    }


def to_proto(array: Array) -> Any:
    """An array as a `TensorProto`; arrays of objects must contain bytes."""
    shape = protos.TensorShapeProto(dim=[{"size": size} for size in array.shape])
    if array.dtype == object:
        return protos.TensorProto(
            dtype=_NUMBERS["string"], tensor_shape=shape, string_val=array.ravel()
        )
    little = array.astype(array.dtype.newbyteorder("<"))
    return protos.TensorProto(
        dtype=_NUMBERS[array.dtype.name],
        tensor_shape=shape,
        tensor_content=little.tobytes(),
    )


def from_proto(name: str, proto: Any) -> Array:
    """A `TensorProto` as an array; strings become texts.

    Raises:
        ValueError: its type is unknown, or values are missing.
    """
    if proto.dtype not in _TYPES:
        raise ValueError(f"`{name}` has a type that is unknown here: {proto.dtype}")
    dtype, field = _TYPES[proto.dtype]
    shape = [dim.size for dim in proto.tensor_shape.dim]
    if dtype == "string":
        values = np.empty(len(proto.string_val), object)
        values[:] = [text.decode("utf-8", "replace") for text in proto.string_val]
    elif proto.tensor_content:
        values = np.frombuffer(proto.tensor_content, np.dtype(dtype).newbyteorder("<"))
        values = values.astype(dtype)
    else:
        values = np.array(getattr(proto, field), dtype)
    return values.reshape(shape)


def _spec(info: Any) -> TensorSpec:
    """Type and shape in a `TensorInfo`."""
    name, _ = _TYPES.get(info.dtype, (f"type {info.dtype} of TensorFlow", ""))
    sizes = [dim.size for dim in info.tensor_shape.dim]
    return TensorSpec(name, tuple(None if size < 0 else size for size in sizes))
