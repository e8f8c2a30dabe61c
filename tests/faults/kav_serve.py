"""Keeps `kav serve` busy with many clients, and a sender of the largest legal requests.

    taskset --cpu-list 0 python -m tests.faults.kav_serve --clients 50 --seconds 120

Needs an environment with MLServer. Every client must get its translations; the sender
gets them or is told that its time is over. The measure is how long the clients wait.
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from keras_attnvariants.serving.folders import newest_version
from keras_attnvariants.serving.folders import read_info
from keras_attnvariants.serving.mlserver_requests import MAX_BYTES
from tests.faults.serving import export_tiny
from tests.faults.serving import random_texts

SECONDS = 180  # from the start until it is ready


class KavServe:
    """An exported model in MLServer, on free ports of this machine.

    Args:
        folder: folder written by `export`.
        model: name of the model on the server.
        *options: options of `kav serve`.

    Attributes:
        address: address for HTTP.
        grpc_address: address for gRPC.
    """

    def __init__(self, folder: Path, model: str, *options: str):
        self.model = model
        ports = free_ports(3)
        self.address, self.grpc_address = (f"127.0.0.1:{port}" for port in ports[:2])
        names = ("--port", "--grpc-port", "--metrics-port")
        where = [str(x) for pair in zip(names, ports, strict=True) for x in pair]
        call = [sys.executable, "-m", "keras_attnvariants", "serve", str(folder)]
        self.process = subprocess.Popen([*call, "--name", model, *where, *options])

    def __enter__(self):
        try:
            # Alive before it is ready.
            self.wait(lambda: self.status("/v2/health/live") == 200)
            self.wait(lambda: self.status(f"/v2/models/{self.model}/ready") == 200)
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *error):
        self.process.terminate()
        assert self.process.wait(30) == 0

    def status(self, path: str) -> int:
        """The HTTP status of a page, 0 if there is no server."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}") as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def ask(url: str, texts: list[str]) -> int:
    """The status of the answer to a request."""
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)]}
    body = json.dumps({"inputs": [{**tensor, "data": texts}]}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:  # noqa: S310
            assert len(json.load(reply)["outputs"][0]["data"]) == len(texts)
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def largest(texts: list[str], longest: int) -> list[str]:
    """The texts of the largest request: as long as they are read, and as many."""
    draw = random.Random(1)
    words = " ".join(texts).split()
    count = min(1024, MAX_BYTES // longest)
    width = min(longest, (MAX_BYTES - 200) // count - 4)
    found = []
    for _ in range(count):
        text = " ".join(draw.choices(words, k=width))
        # In JSON, every other character takes more than one byte.
        found.append("".join(c for c in text if c.isascii() and c not in '"\\')[:width])
    return found


class Load:
    """Clients, one of them greedy, that send requests until the time is over."""

    def __init__(self, server: KavServe, texts: list[str], longest: int, pause: float):
        self.url = f"http://{server.address}/v2/models/{server.model}/infer"
        self.texts = texts
        self.pause = pause
        self.largest = largest(texts, longest)
        self.end = 0.0
        self.seconds: list[float] = []
        self.greedy: Counter[int] = Counter()

    def client(self, number: int) -> None:
        draw = random.Random(number)
        time.sleep(draw.uniform(0, self.pause))
        while time.monotonic() < self.end:
            begin = time.monotonic()
            assert ask(self.url, draw.sample(self.texts, draw.randint(1, 4))) == 200
            self.seconds.append(time.monotonic() - begin)
            time.sleep(draw.uniform(0, 2 * self.pause))

    def sender(self) -> None:
        while time.monotonic() < self.end:
            self.greedy[ask(self.url, self.largest)] += 1

    def run(self, clients: int, seconds: float, with_sender: bool) -> str:
        self.end = time.monotonic() + seconds
        self.seconds.clear()
        threads = [
            threading.Thread(target=self.client, args=[n]) for n in range(clients)
        ]
        if with_sender:
            threads.append(threading.Thread(target=self.sender))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        p50, p99 = np.percentile(self.seconds, [50, 99])
        return (
            f"{len(self.seconds):,} requests of {clients} clients, seconds p50 "
            f"{p50:.2f}, p99 {p99:.2f}, most {max(self.seconds):.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=50, help="clients (50)")
    parser.add_argument("--seconds", type=float, default=120, help="seconds (120)")
    parser.add_argument("--pause", type=float, default=1, help="pause of a client (1)")
    parser.add_argument("--saved-model", type=Path, help="(a tiny one)")
    parser.add_argument("--texts", type=Path, help="sentences for it, one a line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="served-") as name:
        folder, texts = options.saved_model, random_texts()
        if folder is None:
            texts = export_tiny(folder := Path(name))
        if options.texts is not None:
            texts = options.texts.read_text("utf-8").splitlines()
        longest = read_info(newest_version(folder))["options"]["max_characters"]
        with KavServe(folder, "served") as server:
            load = Load(server, texts, longest, options.pause)
            size = sum(map(len, load.largest))
            print(f"largest request: {len(load.largest)} texts, {size:,} characters")
            how = options.clients, options.seconds
            print("alone:", load.run(*how, with_sender=False), flush=True)
            print("with a sender:", load.run(*how, with_sender=True), flush=True)
            print("the sender's answers, by status:", dict(load.greedy))


if __name__ == "__main__":
    main()
