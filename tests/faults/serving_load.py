"""Keeps a server busy with many clients while it is killed and while versions appear.

    python -m tests.faults.serving_load --clients 200 --seconds 120

Every text has to get its own translation, or an exception that says why not. Patient
clients get all translations, in whatever way the server is disturbed: it is killed
with SIGKILL and started again, gets a version that is damaged, which it must not take,
and one that is whole. The server is the one of the tests, not TensorFlow Serving.
"""

import argparse
import asyncio
from pathlib import Path

from keras_attnvariants.serving.client import Client
from keras_attnvariants.serving.client import ModelNotFoundError
from tests.faults.serving import MODEL
from tests.faults.serving import Load
from tests.faults.serving import ServerProcess
from tests.faults.serving import add_version
from tests.faults.serving import export_tiny
from tests.faults.serving import temporary

PATIENT = {"retries": 100, "timeout": 300.0}
IMPATIENT = {"retries": 0, "timeout": 300.0}


def undisturbed(server: ServerProcess, texts: list[str], clients: int, seconds: float):
    """Runs without a disturbance: nothing fails."""
    load = Load(server.address, texts, clients, **PATIENT)
    asyncio.run(load.run(asyncio.sleep(seconds)))
    load.check()
    return load


def versions_appear(
    server: ServerProcess, texts: list[str], clients: int, seconds: float
):
    """Adds versions: nothing fails; the server takes 3 and leaves the damaged 2."""
    load = Load(server.address, texts, clients, **PATIENT)

    async def appear() -> None:
        add_version(server.folder, 2, damaged=True)
        add_version(server.folder, 3)
        while not await asyncio.to_thread(is_served, server, 3):
            await asyncio.sleep(0.5)
        found = [version for version in (1, 2, 3) if is_served(server, version)]
        assert found == [1, 3], found

    half = seconds / 2
    asyncio.run(load.run(asyncio.sleep(half), appear(), asyncio.sleep(half)))
    load.check()
    return load


def is_served(server: ServerProcess, version: int) -> bool:
    """Whether the server answers for a version."""
    with Client(server.address, MODEL, version=version, **PATIENT) as client:
        try:
            client.signatures()
        except ModelNotFoundError:
            return False
    return True


def killed(server: ServerProcess, texts: list[str], clients: int, seconds: float):
    """Kills the server: patient clients get everything, others an exception."""
    patient = Load(server.address, texts, clients, **PATIENT)
    impatient = Load(server.address, texts, max(clients // 10, 1), **IMPATIENT)

    async def restart() -> None:
        server.kill()
        await asyncio.to_thread(server.start)

    async def run() -> None:
        half = seconds / 2
        others = impatient.run(asyncio.sleep(half), restart(), asyncio.sleep(half))
        await patient.run(others)

    asyncio.run(run())
    patient.check()
    impatient.check("ServerUnavailableError")
    assert impatient.outcomes["ServerUnavailableError"]
    return patient, impatient


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=200, help="clients (200)")
    parser.add_argument("--seconds", type=float, default=120, help="seconds (120)")
    options = parser.parse_args()
    load = options.clients, options.seconds
    with temporary() as name:
        texts = export_tiny(folder := Path(name))
        with ServerProcess(folder) as server:
            print("undisturbed:", undisturbed(server, texts, *load).summary())
            print("new versions:", versions_appear(server, texts, *load).summary())
            for clients in killed(server, texts, *load):
                print("killed:", clients.summary())


if __name__ == "__main__":
    main()
