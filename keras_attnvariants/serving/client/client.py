"""A client of TensorFlow Serving that translates with exported models."""

import functools
import time
import weakref
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any
from typing import Self

from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import checked_call
from keras_attnvariants.serving.calls import limit_in
from keras_attnvariants.serving.client.exchange import Connection
from keras_attnvariants.serving.client.exchange import InvalidRequestError
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import T
from keras_attnvariants.serving.client.exchange import pause_after
from keras_attnvariants.serving.client.exchange import reading_reply
from keras_attnvariants.serving.client.exchange import split_address
from keras_attnvariants.serving.translator import DEFAULT
from keras_attnvariants.serving.translator import BaseTranslator
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

_MAX_BATCH = 64  # the default of exports


class Client(BaseTranslator):
    """Translates with a model on TensorFlow Serving, over gRPC or REST.

    It also has the methods of `BaseTranslator`. It imports neither TensorFlow nor
    Keras. Any number of threads may share it; coroutines use
    `await asyncio.to_thread(client.translate, texts)`.

    Args:
        address: `host:port` or `grpc://host:port` for gRPC, `grpcs://host:port` for
            gRPC with TLS, `http://host:port` or `https://host:port` for REST.
        model: its name on the server.
        version: number of the version to use; by default the newest that is loaded.
        label: label of the version, such as `"stable"`, instead of its number.
        max_batch: largest number of sentences in a request; by default 64, the default
            of exports, or less once the server says so.
        timeout: seconds for a request, including retries.
        retries: how often to send a request again while the server is not available,
            after random pauses that double. Other failures are not retried.
        concurrency: number of concurrent requests of one call.
        max_message_bytes: largest size of a request or a reply, in bytes.
        headers: sent with every request, such as `{"authorization": "Bearer …"}`.

    Raises:
        ValueError: an argument is out of range.
        ServingError: a method failed; the subclass says why.

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
        concurrency: int = 4,
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
        self.concurrency = check_integer("concurrency", concurrency)
        self._max_bytes = check_integer("max_message_bytes", max_message_bytes)
        self._longest = max_message_bytes // 8  # of a recording, to fit into a request
        self._known: dict[str, Signature] = {}
        scheme, _ = split_address(address)
        # Each imports a library that the other does not need.
        protocol = "rest_api" if scheme in ("http", "https") else "grpc_api"
        found = import_module(f"keras_attnvariants.serving.client.{protocol}")
        connection = Connection(
            address, model, version, label, headers or {}, max_message_bytes
        )
        self._server = found.Server(connection)
        # Closes the connections even if the user does not.
        weakref.finalize(self, self._server.close)

    def signatures(self) -> dict[str, Signature]:
        """The signatures of the model, by name."""
        if not self._known:
            self._known = self._ask(self._server.signatures)
        return dict(self._known)

    def predict(
        self,
        inputs: Mapping[str, Any],
        signature: str = DEFAULT,
        outputs: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """See `BaseTranslator.predict`."""
        size = self.max_batch
        try:
            call = checked_call(self._signature(signature), inputs, outputs)
            return self._predict_batches(call, size)
        except (ValueError, InvalidRequestError) as refusal:
            # A new version may have other signatures.
            self._known = {}
            limit = limit_in(str(refusal))
            if not self.learns_max_batch or not 0 < limit < size:
                raise
            self.max_batch = limit
        return self.predict(inputs, signature, outputs)

    def close(self) -> None:
        """Closes the connections."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _signature(self, name: str) -> Signature:
        if name not in self._known:  # a new version may have it
            self._known = self._ask(self._server.signatures)
        return self._known[check_choice("signature", name, sorted(self._known))]

    def _predict_batches(self, call: Call, size: int) -> dict[str, Array]:
        """Calls the model with at most `size` sentences at a time, as many as fit."""
        fitting = max(self._max_bytes // call.bytes_of_row, 1)
        rows, parts = zip(*call.batches(min(size, fitting)), strict=True)
        asks = [functools.partial(self._server.predict, call, part) for part in parts]
        with ThreadPoolExecutor(self.concurrency) as pool:
            # After a failure, waiting requests do not start.
            found = list(pool.map(self._ask, asks))
        with reading_reply(self._server.address):
            return call.joined(rows, found)

    def _ask(self, ask: Callable[[float], T]) -> T:
        """Calls `ask` with the seconds left, again if the server is unavailable."""
        end = time.monotonic() + self.timeout
        failed = 0
        while True:
            try:
                return ask(max(end - time.monotonic(), 1e-3))
            except ServerUnavailableError as error:
                failed += 1
                if failed > self.retries:
                    raise
                left = end - time.monotonic()
                pause = pause_after(error, failed, self.timeout, left)
            time.sleep(pause)
