"""A server for tests in the process of the tests."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.serving.prediction_service import Model
from tests.serving.prediction_service import serving


@dataclass(frozen=True)
class Service:
    """A server that runs.

    Attributes:
        folder: folder of all versions.
        model: object that serves them; `look` makes it take new ones.
        grpc, rest: addresses.
    """

    folder: Path
    model: Model
    grpc: str
    rest: str

    def address(self, protocol: str) -> str:
        return self.grpc if protocol == "grpc" else self.rest


@contextlib.contextmanager
def service_of(folder: Path, merge: float | None = None) -> Iterator[Service]:
    """Serves the versions in a folder as the model `en-de`.

    Args:
        folder: folder of the versions.
        merge: seconds that requests wait for others, to be answered together.
    """
    with serving("en-de", folder, merge=merge) as (model, port, rest_port):
        assert not model.failed
        yield Service(
            folder, model, f"localhost:{port}", f"http://localhost:{rest_port}"
        )
