"""The messages of TensorFlow Serving, compared with the real ones."""

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import any_pb2
from google.protobuf import wrappers_pb2
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import model_pb2
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.apis import status_pb2

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.messages import from_proto
from keras_attnvariants.serving.messages import to_proto

REAL = {
    "Dim": tensor_shape_pb2.TensorShapeProto.Dim,
    **{
        name: getattr(module, name)
        for module in (
            any_pb2,
            wrappers_pb2,
            tensor_pb2,
            tensor_shape_pb2,
            meta_graph_pb2,
            get_model_metadata_pb2,
            model_pb2,
            predict_pb2,
            prediction_log_pb2,
            status_pb2,
        )
        for name in vars(messages.protos)
        if hasattr(module, name)
    },
}


@pytest.mark.parametrize("name", sorted(vars(messages.protos)))
def test_a_message_equals_the_real_one(name):
    compare(getattr(messages.protos, name).DESCRIPTOR, REAL[name].DESCRIPTOR)


def compare(ours, real):
    """Name, number, type and cardinality of every field that we declare."""
    for field in ours.fields:
        other = real.fields_by_name[field.name]
        assert field.number == other.number
        assert field.type == other.type
        for name in ("is_repeated", "is_packed"):
            # A protobuf as old as TensorFlow 2.19 needs does not know them.
            assert getattr(field, name, None) == getattr(other, name, None)
        for value in field.enum_type.values if field.enum_type else ():
            assert other.enum_type.values_by_number[value.number].name == value.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            compare(field.message_type, other.message_type)


def test_the_real_message_reads_ours():
    ours = messages.protos.PredictRequest(output_filter=["a"])
    ours.model_spec.name = "en-de"
    ours.model_spec.version.value = 3
    ours.inputs["x"].dtype = 1
    ours.inputs["x"].float_val.extend([1.5, 2.5])
    ours.inputs["x"].tensor_shape.dim.add(size=2)
    real = predict_pb2.PredictRequest.FromString(ours.SerializeToString())
    assert real.model_spec.version.value == 3
    np.testing.assert_array_equal(tf.make_ndarray(real.inputs["x"]), [1.5, 2.5])
    assert list(real.output_filter) == ["a"]


ARRAYS = [
    np.array([[1.5, -2.0, np.inf]], "float32"),
    np.array([1e300], "float64"),
    np.arange(6, dtype="int32").reshape(2, 1, 3),
    np.array(2**40, "int64"),
    np.array([[True], [False]]),
    np.zeros((0, 4), "int32"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.dtype.name)
def test_numbers_survive_the_way_there_and_back(array):
    sent = to_proto(array)
    real = tensor_pb2.TensorProto.FromString(sent.SerializeToString())
    np.testing.assert_array_equal(tf.make_ndarray(real), array)
    # TensorFlow Serving answers with values one by one or, on request, all at once.
    for reply in (one_by_one(array), tf.make_tensor_proto(array)):
        back = messages.protos.TensorProto.FromString(reply.SerializeToString())
        received = from_proto("x", back)
        np.testing.assert_array_equal(received, array)
        assert (received.dtype, received.shape) == (array.dtype, array.shape)


def one_by_one(array):
    dtype = tf.dtypes.as_dtype(array.dtype)
    proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    kind = {"float32": "float", "float64": "double", "int32": "int"}
    field = f"{kind.get(dtype.name, dtype.name)}_val"
    getattr(proto, field).extend(array.ravel().tolist())
    return proto


def test_texts_go_as_bytes_and_come_as_texts():
    texts = np.array([["ä", "", "😀"]], object)
    sent = to_proto(TensorSpec("string", (None, None)).array("text", texts))
    real = tensor_pb2.TensorProto.FromString(sent.SerializeToString())
    assert tf.make_ndarray(real).tolist() == [["ä".encode(), b"", "😀".encode()]]
    np.testing.assert_array_equal(from_proto("text", sent), texts)


def test_invalid_unicode_is_replaced():
    array = TensorSpec("string", (None,)).array("text", ["a\ud800b", b"\xff"])
    assert array.tolist() == [b"a?b", b"\xff"]
    assert from_proto("text", to_proto(array)).tolist() == ["a?b", "\ufffd"]


@pytest.mark.parametrize("size", [1 << 40, 3, 0])
def test_a_shape_that_is_not_that_of_the_values_is_refused(size):
    proto = to_proto(np.zeros(2, "float32"))
    proto.tensor_shape.dim[0].size = size
    with pytest.raises(ValueError, match="cannot reshape array of size 2 into shape"):
        from_proto("x", proto)


def test_unknown_types_are_named():
    with pytest.raises(ValueError, match="`x` has a type that is unknown here: 14"):
        from_proto("x", messages.protos.TensorProto(dtype=14))


def test_what_signatures_say():
    definitions = messages.protos.SignatureDefMap()
    definitions.signature_def["__saved_model_init_op"].SetInParent()
    inputs = definitions.signature_def["f"].inputs
    inputs["x"].dtype = 3
    inputs["x"].tensor_shape.dim.add(size=-1)
    inputs["x"].tensor_shape.dim.add(size=4)
    inputs["one"].dtype = 14
    [signature] = messages.signatures_of(definitions).values()
    assert signature.name == "f"
    assert signature.inputs == {
        "x": TensorSpec("int32", (None, 4)),
        "one": TensorSpec("type 14 of TensorFlow", ()),
    }
