"""A client of TensorFlow Serving that translates with exported models."""

import functools
import time
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from typing import Self

import grpc

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.calls import limit_in
from keras_attnvariants.serving.client.exchange import InvalidRequestError
from keras_attnvariants.serving.client.exchange import MessageTooLargeError
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import error_of
from keras_attnvariants.serving.client.exchange import pause_after
from keras_attnvariants.serving.client.exchange import reading
from keras_attnvariants.serving.client.exchange import target_of
from keras_attnvariants.serving.messages import protos
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

_MAX_BATCH = 64  # as models are exported unless told otherwise
_METADATA = "signature_def"


class Client(BaseTranslator):
    """Translates with a model on TensorFlow Serving, over gRPC.

    Beside its own methods it has those of `BaseTranslator`. It imports neither
    TensorFlow nor Keras. Any number of threads may share it; coroutines ask by
    `await asyncio.to_thread(client.translate, texts)`.

    Args:
        address: `host:port` or `grpc://host:port`; `grpcs://host:port` for TLS.
        model: its name on the server.
        version: number of the version to ask; by default the newest that is loaded.
        label: the same by its label, such as `"stable"`.
        max_batch: sentences in a request, at most; by default 64, as models are
            exported by default, or less as soon as the server says so.
        timeout: seconds for a request, those of sending it again included.
        retries: times that a request is sent again while the server is not
            available, after pauses that double and vary by chance. Nothing else is
            sent again.
        together: requests of one call that are on their way at once.
        max_message_bytes: bytes of a request or a reply, at most.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`.

    Raises:
        ValueError: an argument is out of range.
        ServingError: by a method, of the kind that says why; nothing is returned then.

    Example:

    ```python
    with kav.serving.Client("localhost:8500", "en-de", label="stable") as client:
        client.translate(["Good morning."])
        [[best, *others]] = client.nbest(["Good morning."])
        client.predict({"text": ["Good morning."]}, "nbest", ["translations"])
    ```
    """

    def __init__(
        self,
        address: str,
        model: str,
        *,
        version: int | None = None,
        label: str | None = None,
        max_batch: int | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        together: int = 4,
        max_message_bytes: int = 1 << 24,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if version is not None and label is not None:
            raise ValueError(
                "Give either `version` or `label`. Received: "
                f"version={version}, label={label!r}"
            )
        if not model:
            raise ValueError(f"`model` must be a name. Received: {model!r}")
        self.learns_max_batch = max_batch is None
        limit = _MAX_BATCH if max_batch is None else max_batch
        self.max_batch = check_integer("max_batch", limit)
        self.timeout = check_positive("timeout", timeout)
        self.retries = check_integer("retries", retries, minimum=0)
        self.together = check_integer("together", together)
        self._max_bytes = check_integer("max_message_bytes", max_message_bytes)
        self._known: dict[str, Signature] = {}
        self._headers = [(name.lower(), text) for name, text in (headers or {}).items()]
        self._spec = protos.ModelSpec(name=model, version_label=label)
        if version is not None:
            self._spec.version.value = version
        self._address = target_of(address)
        self._channel = channel(address, max_message_bytes)

    def signatures(self) -> dict[str, Signature]:
        """The signatures of the model, by name."""
        if not self._known:
            message = protos.GetModelMetadataRequest(
                model_spec=self._spec, metadata_field=[_METADATA]
            )
            body = self._ask("PredictionService/GetModelMetadata", message)
            with reading(self._address):
                reply = protos.GetModelMetadataResponse.FromString(body)
                found = reply.metadata[_METADATA].value
                definitions = protos.SignatureDefMap.FromString(found)
                self._known = messages.signatures_of(definitions)
        return dict(self._known)

    def versions(self) -> dict[int, str]:
        """The state of every version on the server, such as `{1: "AVAILABLE"}`."""
        message = protos.GetModelStatusRequest(model_spec={"name": self._spec.name})
        body = self._ask("ModelService/GetModelStatus", message)
        with reading(self._address):
            reply = protos.GetModelStatusResponse.FromString(body)
            return messages.states_of(reply)

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        try:
            call = checked_call(self._signature(signature), inputs, outputs)
            while True:
                size = self.max_batch
                try:
                    return self._predict_batches(call, size)
                except InvalidRequestError as refusal:
                    limit = limit_in(str(refusal))
                    if not self.learns_max_batch or not 0 < limit < size:
                        raise
                    self.max_batch = limit
        except (ValueError, InvalidRequestError):
            # A new version may have other signatures.
            self._known = {}
            raise

    def close(self) -> None:
        """Ends the connections."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _signature(self, name: str) -> Signature:
        known = self.signatures()
        return known[check_choice("signature", name, sorted(known))]

    def _predict_batches(self, call: Call, size: int) -> dict[str, Array]:
        """Calls with so many sentences at a time, several at once."""
        rows, parts = zip(*call.batches(size), strict=True)
        ask = functools.partial(self._predict_batch, call)
        if len(parts) == 1:
            found = [ask(parts[0])]
        else:
            with ThreadPoolExecutor(self.together) as pool:
                # After a failure those that wait do not begin.
                found = list(pool.map(ask, parts))
        with reading(self._address):
            return call.joined(rows, found)

    def _predict_batch(self, call: Call, inputs: Arrays) -> dict[str, Array]:
        message = messages.predict_request(
            self._spec, call.signature.name, inputs, call.outputs
        )
        body = self._ask("PredictionService/Predict", message)
        with reading(self._address):
            found = dict(protos.PredictResponse.FromString(body).outputs)
            return {n: messages.from_proto(n, found[n]) for n in call.outputs}

    def _ask(self, method: str, message: Any) -> bytes:
        """The body of the reply to a message, sent until the server is available."""
        body = message.SerializeToString()
        if len(body) > self._max_bytes:
            raise MessageTooLargeError(
                f"The request has {len(body):,} bytes, more than `max_message_bytes` "
                f"({self._max_bytes:,}): send fewer sentences at once"
            )
        end = time.monotonic() + self.timeout
        failed = 0
        while True:
            try:
                return self._send(method, body, max(end - time.monotonic(), 1e-3))
            except ServerUnavailableError as error:
                failed += 1
                if failed > self.retries:
                    raise
                left = end - time.monotonic()
                pause = pause_after(error, failed, self.timeout, left)
            time.sleep(pause)

    def _send(self, method: str, body: bytes, timeout: float) -> bytes:
        ask = self._channel.unary_unary(f"/tensorflow.serving.{method}")
        try:
            return ask(body, timeout=timeout, metadata=self._headers)
        except grpc.RpcError as error:
            details = error.details() or "no details"
            raise error_of(self._address, error.code().name, details) from error


def channel(address: str, max_bytes: int) -> grpc.Channel:
    """A channel to an address.

    Args:
        address: as for `Client`.
        max_bytes: bytes of a message in either direction, at most.
    """
    options = [
        ("grpc.max_send_message_length", max_bytes),
        ("grpc.max_receive_message_length", max_bytes),
        # A server that comes back is found again within a second.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 500),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    if address.startswith("grpcs://"):
        credentials = grpc.ssl_channel_credentials()
        return grpc.secure_channel(target_of(address), credentials, options)
    return grpc.insecure_channel(target_of(address), options)
