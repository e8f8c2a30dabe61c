"""The chief as a worker sees it: asked again while it is started again."""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import grpc
from keras_tuner.errors import FatalError
from keras_tuner.src.distribute import oracle_client

from keras_attnvariants.tuning import settings

# What a call ends with if nobody answers.
AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
# Seconds of one call.
TIMEOUT = 60.0


class ChiefGoneError(FatalError, settings.ChiefGoneError):
    """The same in a form that no trial is blamed for."""


class PatientOracle:
    """Has the methods of keras-tuner's client; they wait for a chief that is away.

    A chief takes a question that it has answered before for the same one.

    Args:
        client: keras-tuner's.
        address: of the chief.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        oracle_client.TIMEOUT = min(TIMEOUT, settings.PATIENCE)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        return functools.partial(self._ask, found) if callable(found) else found

    def _ask(self, question: Callable[..., Any], *values: Any, **options: Any) -> Any:
        end = time.monotonic() + settings.PATIENCE
        for attempt in itertools.count():
            try:
                return question(*values, **options)
            except grpc.RpcError as error:
                if error.code() not in AWAY:
                    raise
                if time.monotonic() >= end:
                    raise ChiefGoneError(self._address) from None
            if attempt == 0:
                print(f"The chief at {self._address} does not answer: waiting for it.")
            time.sleep(settings.PAUSE)
