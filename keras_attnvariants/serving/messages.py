"""The messages of TensorFlow Serving, without TensorFlow: declared, written and read.

The packages that hold them import TensorFlow, which takes seconds. Declared here are
the fields that we use; protobuf keeps the others. Sources: `model`, `predict`,
`prediction_log`, `get_model_metadata` and `get_model_status` in
`tensorflow_serving/apis`; `tensor`, `tensor_shape` and `types` in
`tensorflow/core/framework`; `meta_graph` in `tensorflow/core/protobuf`; the well-known
types of protobuf.
"""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec

# The number of every value, by its name.
_ENUMS: dict[str, dict[str, int]] = {
    "DataType": {
        "DT_INVALID": 0,
        "DT_FLOAT": 1,
        "DT_DOUBLE": 2,
        "DT_INT32": 3,
        "DT_STRING": 7,
        "DT_INT64": 9,
        "DT_BOOL": 10,
    },
    "State": {
        "UNKNOWN": 0,
        "START": 10,
        "LOADING": 20,
        "AVAILABLE": 30,
        "UNLOADING": 40,
        "END": 50,
    },
}

# The number and the type of every field, by its name.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Int64Value": {"value": (1, "int64")},
    "Any": {"value": (2, "bytes")},
    "Dim": {"size": (1, "int64")},
    "TensorShapeProto": {"dim": (2, "repeated Dim"), "unknown_rank": (3, "bool")},
    "TensorProto": {
        "dtype": (1, "DataType"),
        "tensor_shape": (2, "TensorShapeProto"),
        "tensor_content": (4, "bytes"),
        "float_val": (5, "repeated float"),
        "double_val": (6, "repeated double"),
        "int_val": (7, "repeated int32"),
        "string_val": (8, "repeated bytes"),
        "int64_val": (10, "repeated int64"),
        "bool_val": (11, "repeated bool"),
    },
    "TensorInfo": {
        "dtype": (2, "DataType"),
        "tensor_shape": (3, "TensorShapeProto"),
    },
    "SignatureDef": {"inputs": (1, "map TensorInfo"), "outputs": (2, "map TensorInfo")},
    "ModelSpec": {
        "name": (1, "string"),
        "version": (2, "Int64Value"),
        "signature_name": (3, "string"),
        "version_label": (4, "string"),
    },
    "PredictRequest": {
        "model_spec": (1, "ModelSpec"),
        "inputs": (2, "map TensorProto"),
        "output_filter": (3, "repeated string"),
    },
    "PredictResponse": {"outputs": (1, "map TensorProto")},
    "PredictLog": {"request": (1, "PredictRequest")},
    "PredictionLog": {"predict_log": (6, "PredictLog")},
    "GetModelMetadataRequest": {
        "model_spec": (1, "ModelSpec"),
        "metadata_field": (2, "repeated string"),
    },
    "GetModelMetadataResponse": {"metadata": (2, "map Any")},
    "SignatureDefMap": {"signature_def": (1, "map SignatureDef")},
    "GetModelStatusRequest": {"model_spec": (1, "ModelSpec")},
    "ModelVersionStatus": {"version": (1, "int64"), "state": (2, "State")},
    "GetModelStatusResponse": {
        "model_version_status": (1, "repeated ModelVersionStatus")
    },
}

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

# No names of TensorFlow's: both may be in one process.
_PACKAGE = "keras_attnvariants"
_Field = descriptor_pb2.FieldDescriptorProto


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str
) -> None:
    """Declares a field; `kind` is a type, or `repeated` or `map` and a type."""
    many, _, kind = kind.rpartition(" ")
    if many == "map":
        # A map from strings is a list of entries on the wire.
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, kind)
        kind = f"{message.name}.{entry.name}"
    label = _Field.LABEL_REPEATED if many else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if kind.partition(".")[0] in _MESSAGES:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    elif kind in _ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{kind}"
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


def _file() -> descriptor_pb2.FileDescriptorProto:
    """Declares all messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}/serving.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, numbers in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for value, number in numbers.items():
            enum.value.add(name=value, number=number)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())
_classes: dict[str, Any] = {
    name: message_factory.GetMessageClass(
        _pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")
    )
    for name in _MESSAGES
}

TensorShapeProto: Any = _classes["TensorShapeProto"]
TensorProto: Any = _classes["TensorProto"]
ModelSpec: Any = _classes["ModelSpec"]
PredictRequest: Any = _classes["PredictRequest"]
PredictResponse: Any = _classes["PredictResponse"]
PredictionLog: Any = _classes["PredictionLog"]
GetModelMetadataRequest: Any = _classes["GetModelMetadataRequest"]
GetModelMetadataResponse: Any = _classes["GetModelMetadataResponse"]
SignatureDefMap: Any = _classes["SignatureDefMap"]
GetModelStatusRequest: Any = _classes["GetModelStatusRequest"]
GetModelStatusResponse: Any = _classes["GetModelStatusResponse"]


def predict_request(
    spec: Any, signature: str, inputs: Mapping[str, Array], outputs: Sequence[str] = ()
) -> Any:
    """A `PredictRequest`; without names of outputs it asks for all."""
    request = PredictRequest(model_spec=spec, output_filter=outputs)
    request.model_spec.signature_name = signature
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(to_proto(array))
    return request


def signatures_of(definitions: Any) -> dict[str, Signature]:
    """The signatures in a `SignatureDefMap`, without those of TensorFlow's own."""
    return {
        name: Signature(
            name,
            {key: _spec(info) for key, info in definition.inputs.items()},
            {key: _spec(info) for key, info in definition.outputs.items()},
        )
        for name, definition in definitions.signature_def.items()
        if not name.startswith("__")
    }


def states_of(response: Any) -> dict[int, str]:
    """The state of each version in a `GetModelStatusResponse`."""
    names = {number: name for name, number in _ENUMS["State"].items()}
    return {
        status.version: names.get(status.state, "UNKNOWN")
        for status in response.model_version_status
    }


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
        ValueError: its type is unknown here, or values are missing.
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
    if values.size != math.prod(shape):
        raise ValueError(f"`{name}` has {values.size} values for the shape {shape}")
    return values.reshape(shape)


def _spec(info: Any) -> TensorSpec:
    """Type and shape in a `TensorInfo`."""
    name, _ = _TYPES.get(info.dtype, (f"type {info.dtype} of TensorFlow", ""))
    if info.tensor_shape.unknown_rank:
        return TensorSpec(name, None)
    sizes = [dim.size for dim in info.tensor_shape.dim]
    return TensorSpec(name, tuple(None if size < 0 else size for size in sizes))
