"""A model on TensorFlow Serving over REST."""

import base64
import contextlib
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
from keras_attnvariants.serving.client.exchange import ServerUnavailableError
from keras_attnvariants.serving.client.exchange import check_size
from keras_attnvariants.serving.client.exchange import error_of
from keras_attnvariants.serving.client.exchange import one_line
from keras_attnvariants.serving.client.exchange import reading_reply
from keras_attnvariants.serving.client.exchange import without_password

# The JSON types of values, by the kind of their arrays.
_JSON_TYPES = {"O": (str,), "b": (bool,), "i": (int,), "f": (float, int)}


class Server:
    """Requests for one model over HTTP, from any thread.

    The address may have a path, and a user and a password for a proxy that wants them.

    Attributes:
        address: for messages, without the password.
        max_bytes: largest size of a message in either direction, in bytes.
    """

    def __init__(self, connection: Connection) -> None:
        try:
            url = httpx.URL(connection.address)
        except httpx.InvalidURL as error:
            raise ValueError(
                f"`address` is not a URL ({error}). Received: "
                f"{without_password(connection.address)!r}"
            ) from None
        # httpx would log a password in the URL.
        auth = (url.username, url.password) if url.userinfo else None
        self.address = str(url.copy_with(userinfo=b""))
        place = self.address.rstrip("/")
        self._version = f"{place}/v1/models/{quote(connection.model, safe='')}"
        if connection.version is not None:
            self._version += f"/versions/{connection.version}"
        if connection.label is not None:
            self._version += f"/labels/{quote(connection.label, safe='')}"
        self.max_bytes = connection.max_bytes
        usual = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._client = httpx.Client(
            auth=auth,
            headers={**usual, **connection.headers},
            limits=httpx.Limits(),
            # No proxies or passwords from the environment, and the system's CAs.
            trust_env=False,
            verify=ssl.create_default_context(),
        )

    def signatures(self, timeout: float) -> dict[str, Signature]:
        """The signatures; see `send` for `timeout` and errors."""
        body = self.send(f"{self._version}/metadata", None, timeout)
        with reading_reply(self.address):
            found = json.loads(body)["metadata"]["signature_def"]
            definitions = messages.protos.SignatureDefMap()
            # The server sends this field even if it is empty.
            known = {"signature_def": found["signature_def"]}
            json_format.ParseDict(known, definitions, ignore_unknown_fields=True)
            return messages.signatures_of(definitions)

    def predict(self, call: Call, inputs: Arrays, timeout: float) -> dict[str, Array]:
        """The outputs of a batch; see `send` for `timeout` and errors."""
        value = {
            "signature_name": call.signature.name,
            "inputs": {name: _listed(array) for name, array in inputs.items()},
        }
        data = json.dumps(value).encode()
        body = self.send(f"{self._version}:predict", data, timeout)
        with reading_reply(self.address):
            # The server sends all outputs.
            found, specs = json.loads(body)["outputs"], call.signature.outputs
            if len(specs) == 1:  # sent without its name
                found = dict.fromkeys(specs, found)
            return {
                name: _array(name, found[name], specs[name]) for name in call.outputs
            }

    def send(self, url: str, body: bytes | None, timeout: float) -> bytes:
        """Sends a request, and returns the body of the reply.

        Args:
            url: address of the request.
            body: body of the request; `None` for none.
            timeout: seconds to wait.

        Raises:
            ServingError: no reply came in time, or it reports an error.
        """
        check_size(body or b"", self.max_bytes)
        end = time.monotonic() + timeout
        method = "GET" if body is None else "POST"
        found = bytearray()
        try:
            with self._client.stream(
                method, url, content=body, timeout=timeout
            ) as reply:
                for chunk in reply.iter_raw():
                    found += chunk
                    if len(found) > self.max_bytes:
                        raise MessageTooLargeError(
                            f"{self.address}: the reply has more bytes than "
                            f"`max_message_bytes` ({self.max_bytes:,})"
                        )
                    if time.monotonic() > end:
                        raise TimeoutError
        except (httpx.TimeoutException, TimeoutError) as error:
            raise DeadlineError(
                f"{self.address}: no reply in {timeout:.3g} seconds"
            ) from error
        except httpx.LocalProtocolError as error:
            raise ValueError("`headers` must be valid HTTP headers") from error
        except httpx.TransportError as error:
            what = one_line(str(error)) or type(error).__name__
            raise ServerUnavailableError(f"{self.address}: {what}") from error
        if reply.status_code != 200:
            raise error_of(self.address, reply.status_code, _reason(bytes(found)))
        return bytes(found)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def _listed(array: Array) -> Any:
    """An array as JSON; bytes that are not UTF-8 or contain a zero become base64."""
    texts = np.frompyfunc(_text, 1, 1)
    return (texts(array) if array.dtype == object else array).tolist()


def _text(text: bytes) -> Any:
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in text:
            return text.decode("utf-8")
    return {"b64": base64.b64encode(text).decode()}


def _array(name: str, value: Any, spec: TensorSpec) -> Array:
    """A JSON value as an array of an output's type."""
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
