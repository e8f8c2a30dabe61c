"""A server for tests that behaves like TensorFlow Serving, over gRPC and REST.

    python -m tests.serving.prediction_service NAME FOLDER --port 8500 --rest-port 8501

It has the real messages of TensorFlow Serving and runs exports with the loader and the
sessions of TensorFlow's C++. It watches the folder for new versions, replays their
warm-up requests before it takes them, keeps the newest two, and knows the labels
`stable` (the older) and `canary` (the newer). With `--merge` it answers requests
together that come within so many seconds, up to `max_batch_size` of the version's
`batching_params.pbtxt`. When it serves it prints both ports.
"""

import argparse
import contextlib
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import tensorflow as tf
import tensorflow_text  # noqa: F401 (registers the operators of the tokenizer)
from tensorflow.core.protobuf import config_pb2
from tensorflow_serving.apis import get_model_metadata_pb2
from tensorflow_serving.apis import get_model_status_pb2
from tensorflow_serving.apis import model_service_pb2_grpc
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from tests.serving.merging import Merging

State = get_model_status_pb2.ModelVersionStatus.State
WARM_UP = Path("assets.extra") / "tf_serving_warmup_requests"
KEPT = 2


class Refusal(Exception):
    """An answer of the server in place of a result."""

    def __init__(self, code: grpc.StatusCode, message: str):
        super().__init__(message)
        self.code = code


def invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


class Version:
    """A version in a session of its own, as TensorFlow Serving has it.

    Attributes:
        merge: seconds that a request waits for others; `None` to answer each alone.
        enough: requests that are merged without waiting for more; 0 for any number.
    """

    def __init__(self, path: Path, merge: float | None = None):
        self.merge = merge
        self.enough = 0
        batching = (path / "batching_params.pbtxt").read_text()
        [limit] = re.findall(r"max_batch_size { value: (\d+) }", batching)
        self.max_rows = int(limit)
        self.session = tf.compat.v1.Session(graph=tf.Graph())
        with self.session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(self.session, ["serve"], str(path))
        self.signatures = loaded.signature_def
        self.lock = threading.Lock()
        self.callables = {}
        if (path / WARM_UP).is_file():
            for record in tf.data.TFRecordDataset(str(path / WARM_UP)):
                log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
                self.predict(log.predict_log.request)

    def predict(self, request) -> predict_pb2.PredictResponse:
        name = request.model_spec.signature_name or "serving_default"
        if name not in self.signatures:
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{name}" not found.',
            )
        signature = self.signatures[name]
        sent, wanted = sorted(request.inputs), sorted(signature.inputs)
        if sent != wanted:
            raise invalid(
                f"input size does not match signature: {sent} != {wanted}. Sent extra: "
                f"{sorted({*sent} - {*wanted})}. Missing but required: "
                f"{sorted({*wanted} - {*sent})}."
            )
        outputs = list(request.output_filter) or list(signature.outputs)
        for output in outputs:
            if output not in signature.outputs:
                raise invalid(f"output tensor alias not found in signature: {output}")
        arrays = [tf.make_ndarray(request.inputs[key]) for key in wanted]
        run = self.callable(name, tuple(wanted), tuple(outputs))
        if self.merge is not None:
            check_rows(arrays, self.max_rows)
        try:
            found = run(*arrays)
        except tf.errors.OpError as error:
            raise Refusal(code_of(error.error_code), error.message) from error
        reply = predict_pb2.PredictResponse()
        reply.model_spec.CopyFrom(request.model_spec)
        for output, array in zip(outputs, found, strict=True):
            reply.outputs[output].CopyFrom(tf.make_tensor_proto(array))
        return reply

    def callable(self, name: str, inputs: tuple, outputs: tuple):
        """A function that runs a signature, with TensorFlow Serving's type checks."""
        signature = self.signatures[name]
        with self.lock:
            if (name, outputs) not in self.callables:
                options = config_pb2.CallableOptions(
                    feed=[signature.inputs[key].name for key in inputs],
                    fetch=[signature.outputs[key].name for key in outputs],
                )
                run = self.session._make_callable_from_options(options)
                if self.merge is not None:
                    run = Merging(run, self.max_rows, self.merge)
                    run.enough = self.enough
                self.callables[name, outputs] = run
            return self.callables[name, outputs]


def check_rows(arrays: list, limit: int) -> None:
    """Checks a request as TensorFlow Serving does before merging it with others."""
    rows = {len(array) if array.ndim else None for array in arrays}
    if None in rows:
        raise invalid("Batching input tensors must have at least one dimension")
    if len(rows) > 1:
        raise invalid("Batching input tensors must have equal 0th-dimension size")
    if max(rows) > limit:
        raise invalid(
            f"Task size {max(rows)} is larger than maximum input batch size {limit}"
        )


def code_of(number: int) -> grpc.StatusCode:
    return next(code for code in grpc.StatusCode if code.value[0] == number)


class Model:
    """The versions in a folder."""

    def __init__(self, name: str, folder: Path, merge: float | None = None):
        self.name = name
        self.folder = folder
        self.merge = merge
        self.versions: dict[int, Version] = {}
        self.failed: dict[int, str] = {}

    def look(self) -> None:
        """Loads new versions; those that fail are left out."""
        names = [entry.name for entry in self.folder.iterdir() if entry.is_dir()]
        for number in sorted(int(name) for name in names if name.isdecimal())[-KEPT:]:
            if number not in self.versions and number not in self.failed:
                try:
                    version = Version(self.folder / str(number), self.merge)
                except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
                    self.failed[number] = str(error)
                except Refusal as error:
                    self.failed[number] = f"warm-up: {error}"
                else:
                    # A new dictionary: requests that are under way keep the old one.
                    newest = sorted({*self.versions, number})[-KEPT:]
                    have = {**self.versions, number: version}
                    self.versions = {number: have[number] for number in newest}

    def choose(self, spec) -> tuple[int, Version]:
        versions = self.versions
        if spec.name != self.name or not versions:
            raise Refusal(
                grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {spec}"
            )
        number = max(versions)
        if spec.HasField("version"):
            number = spec.version.value
        elif spec.version_label == "stable":
            number = min(versions)
        elif spec.version_label not in ("", "canary"):
            raise invalid(f"Unrecognized servable version label: {spec.version_label}")
        if number not in versions:
            raise Refusal(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: Specific({self.name}, {number})",
            )
        return number, versions[number]

    def predict(self, request):
        number, version = self.choose(request.model_spec)
        reply = version.predict(request)
        reply.model_spec.version.value = number
        return reply

    def metadata(self, request):
        number, version = self.choose(request.model_spec)
        reply = get_model_metadata_pb2.GetModelMetadataResponse()
        reply.model_spec.CopyFrom(request.model_spec)
        reply.model_spec.version.value = number
        found = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in version.signatures.items():
            found.signature_def[name].CopyFrom(signature)
        reply.metadata["signature_def"].Pack(found)
        return reply

    def status(self, request):
        if request.model_spec.name != self.name:
            raise Refusal(grpc.StatusCode.NOT_FOUND, "Could not find any versions")
        reply = get_model_status_pb2.GetModelStatusResponse()
        for number in sorted(self.versions, reverse=True):
            reply.model_version_status.add(version=number, state=State.AVAILABLE)
        for number, message in self.failed.items():
            status = reply.model_version_status.add(version=number, state=State.END)
            status.status.error_message = message
        return reply


class Services(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    """The two services of TensorFlow Serving, of one model."""

    def __init__(self, model: Model):
        self.model = model

    def Predict(self, request, context):
        return answer(self.model.predict, request, context)

    def GetModelMetadata(self, request, context):
        return answer(self.model.metadata, request, context)

    def GetModelStatus(self, request, context):
        return answer(self.model.status, request, context)


def answer(method, request, context):
    try:
        return method(request)
    except Refusal as refusal:
        context.abort(refusal.code, str(refusal))


def start(model: Model, port: int, threads: int = 16) -> tuple[grpc.Server, int]:
    """A gRPC server and its port; messages may be as large as for the real one."""
    server = grpc.server(
        ThreadPoolExecutor(threads),
        options=[
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ],
    )
    services = Services(model)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        services, server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(services, server)
    port = server.add_insecure_port(f"localhost:{port}")
    server.start()
    return server, port


@contextlib.contextmanager
def serving(
    name: str,
    folder: Path,
    port: int = 0,
    rest_port: int = 0,
    merge: float | None = None,
):
    """Serves in this process; yields the model and both ports."""
    from tests.serving.prediction_rest import start_rest

    model = Model(name, Path(folder), merge)
    model.look()
    server, port = start(model, port)
    rest, rest_port = start_rest(model, rest_port)
    try:
        yield model, port, rest_port
    finally:
        server.stop(None).wait()
        rest.shutdown()
        rest.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rest-port", type=int, default=0)
    parser.add_argument("--merge", type=float, metavar="SECONDS")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    place = options.name, options.folder, options.port, options.rest_port
    with serving(*place, options.merge) as (model, port, rest_port):
        print("serving", port, rest_port, flush=True)
        while True:
            time.sleep(0.5)
            model.look()


if __name__ == "__main__":
    main()
