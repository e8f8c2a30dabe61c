"""A model on TensorFlow Serving over REST."""

import asyncio
import base64
import contextlib
import json
import ssl
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
from google.protobuf import json_format

from keras_attnvariants.serving import messages
from keras_attnvariants.serving.calls import Array
from keras_attnvariants.serving.calls import Arrays
from keras_attnvariants.serving.calls import Call
from keras_attnvariants.serving.calls import Signature
from keras_attnvariants.serving.calls import TensorSpec
from keras_attnvariants.serving.client.exchange import DeadlineError
from keras_attnvariants.serving.client.exchange import MessageTooLargeError
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import error_of_status
from keras_attnvariants.serving.client.exchange import one_line

# The types of JSON in which the numbers and texts of a type come.
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "float32": (float, int),
    "float64": (float, int),
}


class RestServer:
    """Asks for one model over HTTP, from any thread or from one event loop.

    Args:
        url: `http://host:port` or `https://host:port`, with or without a path, and a
            user and a password for a proxy that wants them.
        address: the same for messages.
        model, version, label: as for `Client`.
        headers: sent with every request.
        max_bytes: of a body in either direction.
        is_async: whether coroutines use it.
    """

    def __init__(
        self,
        url: str,
        address: str,
        model: str,
        version: int | None,
        label: str | None,
        *,
        headers: dict[str, str],
        max_bytes: int,
        is_async: bool,
    ) -> None:
        self.address = address
        self._model = f"{url.rstrip('/')}/v1/models/{quote(model, safe='')}"
        self._version = self._model
        if version is not None:
            self._version += f"/versions/{version}"
        if label is not None:
            self._version += f"/labels/{quote(label, safe='')}"
        self._max_bytes = max_bytes
        library: Any = httpx.AsyncClient if is_async else httpx.Client
        self._client = library(
            headers={
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
                **headers,
            },
            limits=httpx.Limits(),
            # Neither proxies nor passwords that nobody named, and the system's CAs.
            trust_env=False,
            verify=ssl.create_default_context(),
        )

    def signatures(self) -> Request[dict[str, Signature]]:
        """Asks for the signatures."""

        def read(body: bytes) -> dict[str, Signature]:
            found = json.loads(body)["metadata"]["signature_def"]
            return messages.signatures_of(
                _message(messages.SignatureDefMap, "signature_def", found)
            )

        return Request(f"{self._version}/metadata", None, read)

    def versions(self) -> Request[dict[int, str]]:
        """Asks for the state of each version."""

        def read(body: bytes) -> dict[int, str]:
            return messages.states_of(
                _message(
                    messages.GetModelStatusResponse,
                    "model_version_status",
                    json.loads(body),
                )
            )

        return Request(self._model, None, read)

    def predict(self, call: Call, inputs: Arrays) -> Request[dict[str, Array]]:
        """Asks for the outputs of a batch; the server sends all that there are."""
        value = {
            "signature_name": call.signature.name,
            "inputs": {name: _listed(array) for name, array in inputs.items()},
        }

        def read(body: bytes) -> dict[str, Array]:
            found, specs = json.loads(body)["outputs"], call.signature.outputs
            if len(specs) == 1:  # comes without its name
                found = dict.fromkeys(specs, found)
            return {
                name: _array(name, found[name], specs[name]) for name in call.outputs
            }

        return Request(f"{self._version}:predict", json.dumps(value).encode(), read)

    def send(self, request: Request[Any], timeout: float) -> bytes:
        """The body of the reply.

        Raises:
            ServingError: there is none in time, or it says that something is wrong.
        """
        end = time.monotonic() + timeout
        body = bytearray()
        with self._failures(timeout), self._stream(request, timeout) as reply:
            for chunk in reply.iter_raw():
                self._append(body, chunk)
                if time.monotonic() > end:
                    raise TimeoutError
        return self._checked(reply.status_code, body)

    async def send_async(self, request: Request[Any], timeout: float) -> bytes:
        """As `send`, while others work."""
        body = bytearray()
        with self._failures(timeout):
            async with asyncio.timeout(timeout), self._stream(request) as reply:
                async for chunk in reply.aiter_raw():
                    self._append(body, chunk)
        return self._checked(reply.status_code, body)

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

    async def close_async(self) -> None:
        """As `close`."""
        await self._client.aclose()

    def _stream(self, request: Request[Any], timeout: float | None = None) -> Any:
        request.check_size(self._max_bytes)
        method = "GET" if request.body is None else "POST"
        return self._client.stream(
            method, request.path, content=request.body, timeout=timeout
        )

    def _append(self, body: bytearray, chunk: bytes) -> None:
        body += chunk
        if len(body) > self._max_bytes:
            raise MessageTooLargeError(
                f"{self.address}: the reply has more bytes than `max_message_bytes` "
                f"({self._max_bytes:,})"
            )

    def _checked(self, status: int, body: bytearray) -> bytes:
        if status != 200:
            raise error_of_status(self.address, status, _reason(bytes(body)))
        return bytes(body)

    @contextlib.contextmanager
    def _failures(self, timeout: float) -> Iterator[None]:
        """Gives errors of HTTP their names."""
        try:
            yield
        except (httpx.TimeoutException, TimeoutError) as error:
            raise DeadlineError(
                f"{self.address}: no reply in {timeout:.3g} seconds"
            ) from error
        except httpx.LocalProtocolError as error:
            raise ValueError("`headers` hold what HTTP does not allow") from error
        except httpx.TransportError as error:
            what = one_line(str(error)) or type(error).__name__
            raise ServerUnavailableError(f"{self.address}: {what}") from error


def _message(kind: Any, field: str, value: Any) -> Any:
    """A message from its JSON, with one field of it."""
    found = {field: value[field]}
    return json_format.ParseDict(found, kind(), ignore_unknown_fields=True)


def _listed(array: Array) -> Any:
    """An array as JSON; bytes that are not UTF-8 go as base64."""
    if array.dtype != object:
        return array.tolist()
    flat = np.empty(array.size, object)
    for index, text in enumerate(array.ravel()):
        try:
            flat[index] = text.decode("utf-8")
        except UnicodeDecodeError:
            flat[index] = {"b64": base64.b64encode(text).decode()}
    return flat.reshape(array.shape).tolist()


def _array(name: str, value: Any, spec: TensorSpec) -> Array:
    """JSON as an array of the type of an output."""
    array = np.array(value, object)
    types = _JSON_TYPES[spec.dtype]
    for leaf in array.ravel():
        if type(leaf) not in types:
            raise ValueError(f"`{name}` must be {spec.dtype}. Received: {leaf!r:.80}")
    if spec.dtype != "string":
        array = array.astype(spec.dtype)
    if array.size == 0 and spec.shape is not None:
        # An empty list has no axes after the first.
        array = array.reshape([size or 0 for size in spec.shape])
    return array


def _reason(body: bytes) -> str:
    """What the body of an error says: TensorFlow Serving sends JSON, proxies do not."""
    try:
        return str(json.loads(body)["error"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return body.decode("utf-8", "replace")
