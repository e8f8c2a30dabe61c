"""Replies over gRPC that make no sense; those that do are in test_client.py."""

import pytest

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.client.errors import ServingError
from keras_attnvariants.serving.client.grpc_api import GrpcApi
from keras_attnvariants.serving.client.tensors import Signature

SIGNATURE = Signature("serving_default", {}, {})


def test_a_version_or_label_is_asked_for():
    by_version = GrpcApi("m", 3, None).spec
    assert (by_version.version.value, by_version.version_label) == (3, "")
    by_label = GrpcApi("m", None, "stable").spec
    assert by_label.version_label == "stable"
    assert not by_label.HasField("version")


def test_a_reply_that_is_no_message_is_named():
    with pytest.raises(ServingError, match="The reply is damaged"):
        GrpcApi("m", None, None).prediction(SIGNATURE, b"\xff\xff", [])


def test_a_reply_without_an_output_is_named():
    body = messages.PredictResponse().SerializeToString()
    with pytest.raises(ServingError, match="The reply has no translations"):
        GrpcApi("m", None, None).prediction(SIGNATURE, body, ["translations"])
