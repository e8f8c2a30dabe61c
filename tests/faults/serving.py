"""A served model in a process of its own, and clients that keep it busy."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from keras_attnvariants.serving.client import Client
from keras_attnvariants.serving.client import ServingError

MODEL = "en-de"
MAX_BATCH = 33  # of the models that tests export


class ServerProcess:
    """A server for tests that can be killed, and comes back on the same ports.

    Attributes:
        address: address for gRPC, known once it serves.
    """

    def __init__(self, folder: Path, model: str = MODEL, **environment: str):
        self.folder = folder
        self.environment = {**os.environ, **environment}
        self.model = model
        self.ports = ("0", "0")
        self.address = ""
        self.start()

    def start(self) -> None:
        """Returns when the server answers."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.serving.prediction_service", self.model]
            + [str(self.folder), "--port", self.ports[0], "--rest-port", self.ports[1]],
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        words = self.process.stdout.readline().split()
        assert words[:1] == ["serving"], "the server did not start"
        self.ports = (words[1], words[2])
        self.address = f"localhost:{words[1]}"

    def kill(self) -> None:
        """Sends SIGKILL: no request that is under way gets an answer."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.kill()


class Load:
    """Clients that translate until the time is over, and what became of every text.

    Attributes:
        sent: number of texts for which an answer was asked.
        outcomes: number of texts by what became of them: `right`, `wrong`, or the name
            of the exception.
        seconds: duration of each request that was answered.
    """

    def __init__(self, address: str, texts: list[str], clients: int, **options):
        self.address = address
        self.clients = clients
        self.options = {"max_batch": MAX_BATCH, **options}
        with Client(address, MODEL, max_batch=MAX_BATCH) as client:
            self.pairs = list(zip(texts, client.translate(texts), strict=True))
        self.is_over = False
        self.sent = 0
        self.outcomes: Counter[str] = Counter()
        self.seconds: list[float] = []

    async def run(self, *happening: Awaitable[None]) -> None:
        """Lets all clients work while something happens, and finish what they began."""
        self.is_over = False
        # Each client waits in a thread of its own.
        threads = ThreadPoolExecutor(self.clients)
        working = [
            asyncio.create_task(self.client(n, threads)) for n in range(self.clients)
        ]
        for event in happening:
            await event
        self.is_over = True
        await asyncio.gather(*working)

    async def client(self, number: int, threads: ThreadPoolExecutor) -> None:
        draw = random.Random(number)
        loop = asyncio.get_running_loop()
        with Client(self.address, MODEL, **self.options) as client:
            while not self.is_over:
                pairs = draw.sample(self.pairs, draw.randint(1, 8))
                self.sent += len(pairs)
                begin = time.monotonic()
                try:
                    texts = [text for text, _ in pairs]
                    found = await loop.run_in_executor(threads, client.translate, texts)
                except ServingError as error:
                    self.outcomes[type(error).__name__] += len(pairs)
                    continue
                self.seconds.append(time.monotonic() - begin)
                for (_, expected), translation in zip(pairs, found, strict=True):
                    name = "right" if translation == expected else "wrong"
                    self.outcomes[name] += 1

    def check(self, *allowed: str) -> None:
        """Raises unless every text has one of the allowed outcomes."""
        assert sum(self.outcomes.values()) == self.sent
        assert self.outcomes["right"] and set(self.outcomes) <= {"right", *allowed}, (
            self.outcomes
        )

    def summary(self) -> str:
        outcomes = ", ".join(f"{n:,} {name}" for name, n in self.outcomes.items())
        p50, p95, p99 = np.percentile(self.seconds, [50, 95, 99])
        return (
            f"{self.sent:,} texts of {self.clients} clients: {outcomes}; "
            f"{len(self.seconds):,} requests, seconds p50 {p50:.2f}, p95 {p95:.2f}, "
            f"p99 {p99:.2f}"
        )


def add_version(folder: Path, number: int, *, damaged: bool = False) -> None:
    """Copies version 1; it appears whole, as an export does, or cut short."""
    draft = folder / f"draft-{number}"
    shutil.copytree(folder / "1", draft)
    if damaged:
        [data] = (draft / "variables").glob("*.data-*")
        data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    draft.rename(folder / str(number))


def random_texts() -> list[str]:
    """Sentences of meaningless words."""
    draw = random.Random(4)
    letters = "abcdefghiklmnoprstuäöüéあいう😀"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 5))) for _ in range(80)]
    return [" ".join(draw.choices(words, k=draw.randint(1, 6))) for _ in range(600)]


def export_tiny(folder: Path) -> list[str]:
    """Exports an untrained model as version 1, and returns texts for it."""
    from keras_attnvariants.data import Tokenizer
    from keras_attnvariants.serving import export
    from tests.serving import tools

    texts = random_texts()
    tokenizer = Tokenizer.train(texts, tools.VOCABULARY_SIZE)
    export(tools.sharp_model("hc-sa"), tokenizer, folder, n_best=3, **tools.LIMITS)
    return texts


def temporary() -> tempfile.TemporaryDirectory:
    """A folder for the versions of a model."""
    return tempfile.TemporaryDirectory(prefix="served-")
