"""A server without TensorFlow that returns texts in capitals."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.messages import from_proto
from keras_attnvariants.serving.messages import to_proto

STRING = 7


class Echo(grpc.GenericRpcHandler):
    """Answers with the model, the label and the text in capitals."""

    def service(self, details):
        method = self.predict if details.method.endswith("/Predict") else self.metadata
        return grpc.unary_unary_rpc_method_handler(method)

    def predict(self, body: bytes, context) -> bytes:
        request = messages.protos.PredictRequest.FromString(body)
        spec = request.model_spec
        texts = from_proto("text", request.inputs["text"])
        shouts = [f"{spec.name} {spec.version_label} {t.upper()}" for t in texts]
        shouts = [shout if t else "" for shout, t in zip(shouts, texts, strict=True)]
        reply = messages.protos.PredictResponse()
        array = np.array([shout.encode() for shout in shouts], object)
        reply.outputs["translations"].CopyFrom(to_proto(array))
        return reply.SerializeToString()

    def metadata(self, body: bytes, context) -> bytes:
        found = messages.protos.SignatureDefMap()
        signature = found.signature_def["serving_default"]
        for info in (signature.inputs["text"], signature.outputs["translations"]):
            info.dtype = STRING
            info.tensor_shape.dim.add(size=-1)
        reply = messages.protos.GetModelMetadataResponse()
        reply.metadata["signature_def"].value = found.SerializeToString()
        return reply.SerializeToString()


@contextlib.contextmanager
def echo_server() -> Iterator[str]:
    """Serves on loopback; yields the address."""
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Echo(),))
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()
