"""Arrays on their way: types, shapes and what is refused."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.tensors import TensorSpec
from keras_attnvariants.serving.client.tensors import from_proto
from keras_attnvariants.serving.client.tensors import spec_of
from keras_attnvariants.serving.client.tensors import to_proto

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
    # TensorFlow Serving answers with values one by one, or all at once if told so.
    for reply in (one_by_one(array), tf.make_tensor_proto(array)):
        back = messages.TensorProto.FromString(reply.SerializeToString())
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
    sent = to_proto(TensorSpec("string", None).array("text", texts))
    real = tensor_pb2.TensorProto.FromString(sent.SerializeToString())
    assert tf.make_ndarray(real).tolist() == [["ä".encode(), b"", "😀".encode()]]
    np.testing.assert_array_equal(from_proto("text", sent), texts)


def test_what_is_no_unicode_is_replaced():
    array = TensorSpec("string", (None,)).array("text", ["a\ud800b", b"\xff"])
    assert array.tolist() == [b"a?b", b"\xff"]
    assert from_proto("text", to_proto(array)).tolist() == ["a?b", "\ufffd"]


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("string", [1], "`x` must hold strings. Received: 1"),
        ("string", [None], "`x` must hold strings. Received: None"),
        ("int32", [1.5], "`x` must be int32. Received: float64"),
        ("int32", ["a"], "`x` must be int32. Received: str"),
        ("int32", [[1], [1, 2]], "`x` must have rows of equal length"),
    ],
)
def test_values_of_other_types_are_refused_by_name(dtype, value, message):
    with pytest.raises(ValueError, match=message):
        TensorSpec(dtype, None).array("x", value)


def test_integers_fit_any_number():
    assert TensorSpec("int32", None).array("x", [1, 2]).dtype == np.int32
    assert TensorSpec("float32", None).array("x", [1, 2]).dtype == np.float32


@pytest.mark.parametrize("size", [1 << 40, 3, 0])
def test_a_shape_that_is_not_that_of_the_values_is_refused(size):
    proto = to_proto(np.zeros(2, "float32"))
    proto.tensor_shape.dim[0].size = size
    with pytest.raises(ServingError, match="`x` has 2 values for the shape"):
        from_proto("x", proto)


def test_unknown_types_are_named():
    with pytest.raises(ServingError, match="`x` has a type that is unknown here: 14"):
        from_proto("x", messages.TensorProto(dtype=14))


def test_what_signatures_say():
    info = messages._classes["TensorInfo"](dtype=3)
    info.tensor_shape.dim.add(size=-1)
    info.tensor_shape.dim.add(size=4)
    assert spec_of(info) == TensorSpec("int32", (None, 4))
    assert spec_of(info).is_batched
    assert not TensorSpec("int32", ()).is_batched
    info.tensor_shape.unknown_rank = True
    assert spec_of(info) == TensorSpec("int32", None)
