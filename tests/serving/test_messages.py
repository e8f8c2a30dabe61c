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
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import model_pb2
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.apis import status_pb2

from keras_attnvariants.serving import messages

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
            get_model_status_pb2,
            model_pb2,
            predict_pb2,
            prediction_log_pb2,
            status_pb2,
        )
        for name in messages._MESSAGES
        if hasattr(module, name)
    },
}


@pytest.mark.parametrize("name", sorted(messages._MESSAGES))
def test_a_message_equals_the_real_one(name):
    compare(messages._classes[name].DESCRIPTOR, REAL[name].DESCRIPTOR)


def compare(ours, real):
    """Name, number, type and cardinality of every field that we declare."""
    for field in ours.fields:
        other = real.fields_by_name[field.name]
        assert field.number == other.number
        assert field.is_repeated == other.is_repeated
        assert field.is_packed == other.is_packed
        # On the wire an enumeration is an integer.
        is_enum = other.type == other.TYPE_ENUM
        assert field.type == (field.TYPE_INT32 if is_enum else other.type)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            compare(field.message_type, other.message_type)


def test_states_have_their_names():
    real = get_model_status_pb2.ModelVersionStatus.State
    assert {number: name for name, number in real.items()} == messages.STATES


def test_the_real_message_reads_ours():
    ours = messages.PredictRequest(output_filter=["a"])
    ours.model_spec.name = "en-de"
    ours.model_spec.version.value = 3
    ours.inputs["x"].dtype = 1
    ours.inputs["x"].float_val.extend([1.5, 2.5])
    ours.inputs["x"].tensor_shape.dim.add(size=2)
    real = predict_pb2.PredictRequest.FromString(ours.SerializeToString())
    assert real.model_spec.version.value == 3
    np.testing.assert_array_equal(tf.make_ndarray(real.inputs["x"]), [1.5, 2.5])
    assert list(real.output_filter) == ["a"]
