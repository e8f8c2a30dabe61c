"""What a client says and how it reads the replies, without sending anything."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keras_attnvariants.serving.client import batches
from keras_attnvariants.serving.client.errors import InvalidRequestError
from keras_attnvariants.serving.client.grpc_api import GrpcApi
from keras_attnvariants.serving.client.rest_api import RestApi
from keras_attnvariants.serving.client.steps import Plan
from keras_attnvariants.serving.client.steps import Request
from keras_attnvariants.serving.client.steps import Retries
from keras_attnvariants.serving.client.steps import Together
from keras_attnvariants.serving.client.steps import exchange
from keras_attnvariants.serving.client.tensors import Array
from keras_attnvariants.serving.client.tensors import Signature
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_positive

_MAX_BATCH = 64  # as models are exported unless told otherwise


class BaseClient:
    """What a client says, without sending it: see `Client` for the arguments."""

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
        self.address = address
        self.learns_max_batch = max_batch is None
        self.max_batch = check_integer(
            "max_batch", _MAX_BATCH if max_batch is None else max_batch
        )
        self.timeout = check_positive("timeout", timeout)
        self.retries = Retries(check_integer("retries", retries, minimum=0))
        self.together = check_integer("together", together)
        self.max_message_bytes = check_integer("max_message_bytes", max_message_bytes)
        self.headers = dict(headers or {})
        api = RestApi if self.speaks_http else GrpcApi
        self._api = api(model, version, label)
        self._signatures: dict[str, Signature] = {}

    @property
    def speaks_http(self) -> bool:
        """Whether the address is one of REST; otherwise it is one of gRPC."""
        return self.address.startswith(("http://", "https://"))

    def _grpc_options(self) -> dict[str, Any]:
        """The arguments of a transport over gRPC."""
        tls = self.address.startswith("grpcs://")
        address = self.address.removeprefix("grpcs://").removeprefix("grpc://")
        return {
            "address": address,
            "headers": self.headers,
            "tls": tls,
            "max_bytes": self.max_message_bytes,
        }

    def _http_options(self) -> dict[str, Any]:
        """The arguments of a transport over HTTP."""
        return {
            "address": self.address,
            "headers": self.headers,
            "max_bytes": self.max_message_bytes,
        }

    def _exchange(self, request: Request) -> Plan[bytes]:
        return exchange(request, self.timeout, self.retries)

    def _plan_signatures(self) -> Plan[dict[str, Signature]]:
        """Asks for the signatures once."""
        if not self._signatures:
            body = yield from self._exchange(self._api.signatures_request())
            self._signatures = self._api.signatures(body)
        return dict(self._signatures)

    def _plan_versions(self) -> Plan[dict[int, str]]:
        body = yield from self._exchange(self._api.versions_request())
        return self._api.versions(body)

    def _plan_predict(
        self,
        inputs: Mapping[str, Any],
        signature: str,
        outputs: Sequence[str] | None,
    ) -> Plan[dict[str, Array]]:
        try:
            known = yield from self._plan_signatures()
            function = chosen("signature", signature, known)
            names = list(function.outputs if outputs is None else outputs)
            for name in names:
                chosen("outputs", name, function.outputs)
            arrays = batches.checked_inputs(function, inputs)
            return (yield from self._plan_batches(function, arrays, names))
        except (ValueError, InvalidRequestError):
            # A new version may have other signatures.
            self._signatures = {}
            raise

    def _plan_batches(
        self, signature: Signature, inputs: Mapping[str, Array], outputs: Sequence[str]
    ) -> Plan[dict[str, Array]]:
        """Splits a call; again and smaller if the server says how small."""
        size = self.max_batch
        parts = list(batches.batches(signature, inputs, size))
        plans = [self._plan_batch(signature, part, outputs) for _, part in parts]
        try:
            found = yield Together(plans)
        except InvalidRequestError as error:
            limit = batches.limit_in(str(error))
            if not self.learns_max_batch or not 0 < limit < size:
                raise
            self.max_batch = limit
            return (yield from self._plan_batches(signature, inputs, outputs))
        return batches.joined([rows for rows, _ in parts], found)

    def _plan_batch(
        self, signature: Signature, inputs: Mapping[str, Array], outputs: Sequence[str]
    ) -> Plan[dict[str, Array]]:
        request = self._api.predict_request(signature, inputs, outputs)
        body = yield from self._exchange(request)
        return self._api.prediction(signature, body, outputs)


def chosen(what: str, name: str, choices: Mapping[str, Any]) -> Any:
    """What a name stands for.

    Raises:
        ValueError: nothing; the message lists the names there are.
    """
    if name in choices:
        return choices[name]
    listed = ", ".join(repr(choice) for choice in sorted(choices))
    raise ValueError(f"`{what}` must be one of {listed}. Received: {name!r}")
