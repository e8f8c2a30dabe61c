"""A model on TensorFlow Serving over REST."""

import asyncio
import base64
import json
import ssl
import time
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
from keras_attnvariants.serving.client.exchange import Connection
from keras_attnvariants.serving.client.exchange import DeadlineError
from keras_attnvariants.serving.client.exchange import MessageTooLargeError
from keras_attnvariants.serving.client.exchange import Request
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import error_of
from keras_attnvariants.serving.client.exchange import one_line
from keras_attnvariants.serving.client.exchange import without_password

# The types of JSON in which values come, by the kind of their arrays.
_JSON_TYPES = {"O": (str,), "b": (bool,), "i": (int,), "f": (float, int)}


class Server:
    """Asks for one model over HTTP, from any thread or from one event loop.

    The address may have a path, and a user and a password for a proxy that wants them.

    Attributes:
        address: for messages, without the password.
        max_bytes: bytes of a message in either direction, at most.
    """

    def __init__(self, to: Connection) -> None:
        try:
            url = httpx.URL(to.address)
        except httpx.InvalidURL as error:
            raise ValueError(
                f"`address` is no URL ({error}). Received: "
                f"{without_password(to.address)!r}"
            ) from None
        # In the URL, httpx would log the password.
        auth = (url.username, url.password) if url.userinfo else None
        self.address = str(url.copy_with(userinfo=b""))
        self._model = f"{self.address.rstrip('/')}/v1/models/{quote(to.model, safe='')}"
        self._version = self._model
        if to.version is not None:
            self._version += f"/versions/{to.version}"
        if to.label is not None:
            self._version += f"/labels/{quote(to.label, safe='')}"
        self.max_bytes = to.max_bytes
        self._is_async = to.is_async
        library: Any = httpx.AsyncClient if to.is_async else httpx.Client
        usual = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._client = library(
            auth=auth,
            headers={**usual, **to.headers},
            limits=httpx.Limits(),
            # Neither proxies nor passwords that nobody named, and the system's CAs.
            trust_env=False,
            verify=ssl.create_default_context(),
        )

    def signatures(self) -> Request[dict[str, Signature]]:
        """Asks for the signatures."""

        def read(body: bytes) -> dict[str, Signature]:
            found = json.loads(body)["metadata"]["signature_def"]
            return messages.signatures_of(_message("SignatureDefMap", found))

        return Request(f"{self._version}/metadata", None, read)

    def versions(self) -> Request[dict[int, str]]:
        """Asks for the state of each version."""

        def read(body: bytes) -> dict[int, str]:
            found = _message("GetModelStatusResponse", json.loads(body))
            return messages.states_of(found)

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

    async def send(self, request: Request[Any], timeout: float) -> bytes:
        """The body of the reply; only if coroutines use it, others work meanwhile.

        Raises:
            ServingError: there is none in time, or it says that something is wrong.
        """
        end = time.monotonic() + timeout
        method = "GET" if request.body is None else "POST"
        stream = self._client.stream(
            method, request.path, content=request.body, timeout=timeout
        )
        body = bytearray()
        try:
            if self._is_async:
                async with asyncio.timeout(timeout), stream as reply:
                    async for chunk in reply.aiter_raw():
                        self._append(body, chunk)
            else:
                with stream as reply:
                    for chunk in reply.iter_raw():
                        self._append(body, chunk)
                        if time.monotonic() > end:
                            raise TimeoutError
        except (httpx.TimeoutException, TimeoutError) as error:
            raise DeadlineError(
                f"{self.address}: no reply in {timeout:.3g} seconds"
            ) from error
        except httpx.LocalProtocolError as error:
            raise ValueError("`headers` hold what HTTP does not allow") from error
        except httpx.TransportError as error:
            what = one_line(str(error)) or type(error).__name__
            raise ServerUnavailableError(f"{self.address}: {what}") from error
        if reply.status_code != 200:
            raise error_of(self.address, reply.status_code, _reason(bytes(body)))
        return bytes(body)

    async def close(self) -> None:
        """Ends the connections."""
        if self._is_async:
            await self._client.aclose()
        else:
            self._client.close()

    def _append(self, body: bytearray, chunk: bytes) -> None:
        body += chunk
        if len(body) > self.max_bytes:
            raise MessageTooLargeError(
                f"{self.address}: the reply has more bytes than `max_message_bytes` "
                f"({self.max_bytes:,})"
            )


def _message(kind: str, value: Any) -> Any:
    """A message from its JSON, with its only field, which must be there."""
    message = getattr(messages.protos, kind)()
    [field] = message.DESCRIPTOR.fields
    found = {field.name: value[field.name]}
    return json_format.ParseDict(found, message, ignore_unknown_fields=True)


def _listed(array: Array) -> Any:
    """An array as JSON; bytes that are not UTF-8 go as base64."""
    if array.dtype != object:
        return array.tolist()
    flat = np.empty(array.size, object)
    flat[:] = [_text(text) for text in array.ravel()]
    return flat.reshape(array.shape).tolist()


def _text(text: bytes) -> Any:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(text).decode()}


def _array(name: str, value: Any, spec: TensorSpec) -> Array:
    """JSON as an array of the type of an output."""
    array = np.array(value, object)
    for leaf in array.ravel():
        if type(leaf) not in _JSON_TYPES[spec.array_type.kind]:
            raise ValueError(f"`{name}` must be {spec.dtype}. Received: {leaf!r:.80}")
    if array.size == 0:
        # An empty list has no axes after the first.
        array = array.reshape([size or 0 for size in spec.shape])
    return array.astype(spec.array_type)


def _reason(body: bytes) -> str:
    """The reason in the body of an error: JSON from TensorFlow Serving, else text."""
    try:
        return str(json.loads(body)["error"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return body.decode("utf-8", "replace")
