"""`kav serve`: serves an exported model over HTTP and gRPC."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.models import SAVED
from keras_attnvariants.cli.models import check_place
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.machine import check_extra


@command
def serve(
    path: Path = argument("Folder that `kav export` wrote."),
    name: str | None = option(
        "Name of the model in addresses; default: the name of the folder."
    ),
    host: str = option(
        "Address to listen at; 0.0.0.0 for all, behind a proxy only.", "127.0.0.1"
    ),
    port: int = option("Port for HTTP.", 8080, min=1, max=65535),
    grpc_port: int = option("Port for gRPC.", 8081, min=1, max=65535),
    metrics_port: int = option("Port for Prometheus.", 8082, min=1, max=65535),
    max_wait: float = option("Seconds that a request waits for others.", 0.01, min=0),
    timeout: float = option(
        "Seconds within which a request must arrive, and then be answered.",
        30.0,
        min=0.01,
    ),
) -> None:
    """Serve an exported model with MLServer, where there is no TensorFlow Serving.

    [bold]Example:[/bold] kav serve saved_models/multi30k
    """
    check_place("PATH", path, SAVED)
    if len({port, grpc_port, metrics_port}) < 3:
        raise ValueError(
            "--port, --grpc-port and --metrics-port must differ. Received: "
            f"{port}, {grpc_port}, {metrics_port}"
        )
    check_extra("Serving", "mlserver", ("mlserver",))
    import_tensorflow()
    folder = path.resolve()
    name = name or (folder.parent if folder.name.isdecimal() else folder).name
    # A request can make MLServer load the models in this folder: it is empty.
    with tempfile.TemporaryDirectory() as nothing:
        places = {
            "host": host,
            "http_port": port,
            "grpc_port": grpc_port,
            "metrics_port": metrics_port,
            "model_repository_root": nothing,
            "metrics_dir": nothing,
        }
        asyncio.run(run(name, folder, places, max_wait, timeout))


async def run(
    name: str,
    folder: Path,
    places: dict[str, Any],
    max_wait: float,
    timeout: float,
) -> None:
    """Serves until a signal ends it."""
    from mlserver import MLServer
    from mlserver import ModelSettings
    from mlserver import Settings
    from mlserver.settings import ModelParameters

    from keras_attnvariants.backend.private import web_application
    from keras_attnvariants.serving.mlserver_requests import MAX_BYTES
    from keras_attnvariants.serving.mlserver_requests import protect
    from keras_attnvariants.serving.mlserver_runtime import TranslationRuntime

    # In this process: TensorFlow uses all cores by itself.
    usual = {"debug": False, "parallel_workers": 0}
    server = MLServer(Settings(**usual, grpc_max_message_length=MAX_BYTES, **places))
    protect(web_application(server), timeout)
    model = ModelSettings(
        name=name,
        implementation=TranslationRuntime,
        parameters=ModelParameters(uri=str(folder), extra={"timeout": timeout}),
        max_batch_time=max_wait,
    )
    await server.start([model])
