"""The messages of TensorFlow Serving, without TensorFlow.

The packages that hold them import TensorFlow, which takes seconds. Declared here are
the fields that we use; protobuf keeps the others. Sources: `model`, `predict`,
`prediction_log`, `get_model_metadata` and `get_model_status` in
`tensorflow_serving/apis`; `tensor` and `tensor_shape` in `tensorflow/core/framework`;
`meta_graph` in `tensorflow/core/protobuf`; the well-known types of protobuf.
"""

from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory

# The name and the number of every field, by its type.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Int64Value": {"value": (1, "int64")},
    "Any": {"type_url": (1, "string"), "value": (2, "bytes")},
    "Dim": {"size": (1, "int64")},
    "TensorShapeProto": {"dim": (2, "repeated Dim"), "unknown_rank": (3, "bool")},
    "TensorProto": {
        "dtype": (1, "int32"),
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
        "name": (1, "string"),
        "dtype": (2, "int32"),
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
    "PredictResponse": {
        "outputs": (1, "map TensorProto"),
        "model_spec": (2, "ModelSpec"),
    },
    "PredictLog": {"request": (1, "PredictRequest")},
    "PredictionLog": {"predict_log": (6, "PredictLog")},
    "GetModelMetadataRequest": {
        "model_spec": (1, "ModelSpec"),
        "metadata_field": (2, "repeated string"),
    },
    "GetModelMetadataResponse": {
        "model_spec": (1, "ModelSpec"),
        "metadata": (2, "map Any"),
    },
    "SignatureDefMap": {"signature_def": (1, "map SignatureDef")},
    "GetModelStatusRequest": {"model_spec": (1, "ModelSpec")},
    "StatusProto": {"error_code": (1, "int32"), "error_message": (2, "string")},
    "ModelVersionStatus": {
        "version": (1, "int64"),
        "state": (2, "int32"),
        "status": (3, "StatusProto"),
    },
    "GetModelStatusResponse": {
        "model_version_status": (1, "repeated ModelVersionStatus")
    },
}

# Of `ModelVersionStatus`.
STATES = {
    0: "UNKNOWN",
    10: "START",
    20: "LOADING",
    30: "AVAILABLE",
    40: "UNLOADING",
    50: "END",
}

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
    else:
        field.type = _Field.Type.Value(f"TYPE_{kind.upper()}")


def _file() -> descriptor_pb2.FileDescriptorProto:
    """The declaration of all messages."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{_PACKAGE}/serving.proto", package=_PACKAGE, syntax="proto3"
    )
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
