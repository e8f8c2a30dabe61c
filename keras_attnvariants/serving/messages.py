"""The messages of TensorFlow Serving, without TensorFlow: declared, written and read.

The packages that hold them import TensorFlow, which takes seconds. Declared here are
the fields that we use; protobuf keeps the others. Sources: `model`, `predict`,
`prediction_log`, `get_model_metadata` and `get_model_status` in
`tensorflow_serving/apis`; `tensor`, `tensor_shape` and `types` in
`tensorflow/core/framework`; `meta_graph` in `tensorflow/core/protobuf`; the well-known
types of protobuf.
"""

import math
import re
from collections.abc import Mapping
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec

_DECLARATIONS = """
enum DataType {
  DT_INVALID = 0; DT_FLOAT = 1; DT_DOUBLE = 2; DT_INT32 = 3; DT_STRING = 7;
  DT_INT64 = 9; DT_BOOL = 10;
}
enum State {
  UNKNOWN = 0; START = 10; LOADING = 20; AVAILABLE = 30; UNLOADING = 40; END = 50;
}
message Int64Value { int64 value = 1; }
message Any { bytes value = 2; }
message Dim { int64 size = 1; }
message TensorShapeProto { repeated Dim dim = 2; }
message TensorProto {
  DataType dtype = 1;
  TensorShapeProto tensor_shape = 2;
  bytes tensor_content = 4;
  repeated float float_val = 5;
  repeated double double_val = 6;
  repeated int32 int_val = 7;
  repeated bytes string_val = 8;
  repeated int64 int64_val = 10;
  repeated bool bool_val = 11;
}
message TensorInfo { DataType dtype = 2; TensorShapeProto tensor_shape = 3; }
message SignatureDef {
  map<string, TensorInfo> inputs = 1;
  map<string, TensorInfo> outputs = 2;
}
message ModelSpec {
  string name = 1;
  Int64Value version = 2;
  string signature_name = 3;
  string version_label = 4;
}
message PredictRequest {
  ModelSpec model_spec = 1;
  map<string, TensorProto> inputs = 2;
  repeated string output_filter = 3;
}
message PredictResponse { map<string, TensorProto> outputs = 1; }
message PredictLog { PredictRequest request = 1; }
message PredictionLog { PredictLog predict_log = 6; }
message GetModelMetadataRequest {
  ModelSpec model_spec = 1;
  repeated string metadata_field = 2;
}
message GetModelMetadataResponse { map<string, Any> metadata = 2; }
message SignatureDefMap { map<string, SignatureDef> signature_def = 1; }
message GetModelStatusRequest { ModelSpec model_spec = 1; }
message ModelVersionStatus { int64 version = 1; State state = 2; }
message GetModelStatusResponse { repeated ModelVersionStatus model_version_status = 1; }
"""

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


def _add_field(message: Any, many: str, kind: str, name: str, number: int) -> None:
    """Declares a field; `many` is `"repeated"`, `"map"` or nothing."""
    if many == "map":
        # A map from strings is a list of entries on the wire.
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "", "string", "key", 1)
        _add_field(entry, "", kind, "value", 2)
        kind = f"{message.name}.{entry.name}"
    label = _Field.LABEL_REPEATED if many else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if kind.islower():
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type_name = f".{_PACKAGE}.{kind}"


def _declared() -> dict[str, Any]:
    """The class of every message, by its name."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}/serving.proto", package=_PACKAGE, syntax="proto3"
    )
    field = re.compile(r"(?:(repeated|map)[ <])?(?:string, )?(\w+)>? (\w+) = (\d+);")
    for kind, name, body in re.findall(r"(\w+) (\w+) {(.*?)}", _DECLARATIONS, re.S):
        if kind == "enum":
            enum = file.enum_type.add(name=name)
            for value, number in re.findall(r"(\w+) = (\d+);", body):
                enum.value.add(name=value, number=int(number))
        else:
            message = file.message_type.add(name=name)
            for many, type_name, field_name, number in field.findall(body):
                _add_field(message, many, type_name, field_name, int(number))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles([file.name], pool)


# The classes of messages, by name.
protos: Any = SimpleNamespace(
    **{k.partition(".")[2]: c for k, c in _declared().items()}
)


def predict_request(
    spec: Any, signature: str, inputs: Mapping[str, Array], outputs: Sequence[str] = ()
) -> Any:
    """A `PredictRequest`; without names of outputs it asks for all."""
    request = protos.PredictRequest(model_spec=spec, output_filter=outputs)
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
    field = protos.ModelVersionStatus.DESCRIPTOR.fields_by_name["state"]
    names = {value.number: value.name for value in field.enum_type.values}
    return {
        status.version: names.get(status.state, "UNKNOWN")
        for status in response.model_version_status
    }


def to_proto(array: Array) -> Any:
    """An array as a `TensorProto`; one of objects holds bytes."""
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
    sizes = [dim.size for dim in info.tensor_shape.dim]
    return TensorSpec(name, tuple(None if size < 0 else size for size in sizes))
