"""Sends strings of rubbish to a server, among sentences that must not change.

    python -m tests.faults.serving_fuzz --strings 10000
    python -m tests.faults.serving_fuzz --strings 10000 --server mlserver --clients 16

Every string gets a translation that is valid UTF-8, in time; the sentences in the same
requests are translated as they are alone. The server is the one of the tests, asked
with the messages of TensorFlow Serving, or `kav serve`, asked with those of the Open
Inference Protocol over HTTP, which needs an environment with MLServer. It is started
with a tiny model, unless `--address` names a running server with a model.
"""

import argparse
import contextlib
import json
import random
import time
import urllib.request
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.faults.kav_serve import KavServe
from tests.faults.serving import MAX_BATCH
from tests.faults.serving import MODEL
from tests.faults.serving import ServerProcess
from tests.faults.serving import export_tiny
from tests.faults.serving import random_texts
from tests.faults.serving import temporary
from tests.serving.tools import RUBBISH

SENTENCES = 3  # among the strings of a request
SECONDS = 120  # for the answer to a request

# Translates bytes to bytes, without the client in between.
Wire = Callable[[list[bytes]], list[bytes]]


def rubbish(draw: random.Random) -> bytes:
    """A string: hostile parts, random bytes, random characters, or a huge one."""
    kind = draw.random()
    if kind < 0.01:
        return draw.choice([b"\0", b"a", b"\xf0\x9f\x98", b"\xe2\x96\x81"]) * 65_536
    if kind < 0.3:
        return draw.randbytes(draw.randint(0, 300))
    if kind < 0.6:
        return characters(draw).encode()
    return b"".join(draw.choices(RUBBISH, k=draw.randint(0, 40)))


def characters(draw: random.Random) -> str:
    """A string of random characters of one part of Unicode."""
    ranges = ((0, 0x20), (0x20, 0x250), (0x250, 0xD800), (0xE000, 0x11000))
    low, high = draw.choice([*ranges, (0x10000, 0x110000)])
    length = draw.choice((0, 1, 3, 30, 300))
    return "".join(chr(draw.randrange(low, high)) for _ in range(length))


class PredictWire:
    """The messages of TensorFlow Serving, over gRPC."""

    def __init__(self, address: str, model: str, timeout: float = SECONDS):
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        channel = grpc.insecure_channel(address)
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        self.model = model
        self.timeout = timeout

    def __call__(self, texts: list[bytes]) -> list[bytes]:
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.model
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
        reply = self.stub.Predict(request, timeout=self.timeout)
        return tf.make_ndarray(reply.outputs["translations"]).tolist()


class InferWire:
    """The messages of the Open Inference Protocol, over HTTP.

    Their strings are JSON: bytes that are not valid UTF-8 become U+FFFD before sending.
    """

    def __init__(self, address: str, model: str, timeout: float = SECONDS):
        self.url = f"http://{address}/v2/models/{model}/infer"
        self.timeout = timeout

    def __call__(self, texts: list[bytes]) -> list[bytes]:
        data = [text.decode("utf-8", "replace") for text in texts]
        tensor = {"name": "text", "datatype": "BYTES", "shape": [len(data)]}
        body = json.dumps({"inputs": [{**tensor, "data": data}]}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=self.timeout) as reply:  # noqa: S310
            [output] = json.load(reply)["outputs"]
        return [text.encode() for text in output["data"]]


class Request(NamedTuple):
    """Strings, and the places of the sentences among them, which are not rubbish."""

    strings: list[bytes]
    places: dict[str, int]


def requests(texts: list[str], strings: int, seed: int) -> Iterator[Request]:
    """Requests with this many strings of rubbish in all, and sentences beside them."""
    draw = random.Random(seed)
    while strings > 0:
        batch = [rubbish(draw) for _ in range(min(MAX_BATCH - SENTENCES, strings))]
        strings -= len(batch)
        sentences = draw.sample(texts, SENTENCES)
        for sentence in sentences:
            batch.insert(draw.randint(0, len(batch)), sentence.encode())
        yield Request(batch, {each: batch.index(each.encode()) for each in sentences})


def translations(translate: Wire, strings: list[bytes]) -> list[str]:
    """One translation per string; raises if one is not valid UTF-8."""
    found = translate(strings)
    assert len(found) == len(strings), f"{len(found)} for {len(strings)} strings"
    return [translation.decode("utf-8") for translation in found]


def fuzz(
    translate: Wire, texts: list[str], strings: int, seed: int = 1, clients: int = 1
) -> float:
    """Sends a number of strings; returns the seconds of the slowest request."""
    texts = texts[:50]
    alone = {text: translations(translate, [text.encode()])[0] for text in texts}

    def send(request: Request) -> float:
        begin = time.monotonic()
        found = translations(translate, request.strings)
        seconds = time.monotonic() - begin
        for sentence, place in request.places.items():
            assert found[place] == alone[sentence], sentence
        return seconds

    with ThreadPoolExecutor(clients) as pool:
        try:
            return max(pool.map(send, requests(texts, strings, seed)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


SERVERS = {"tests": (ServerProcess, PredictWire), "mlserver": (KavServe, InferWire)}


@contextlib.contextmanager
def served(server: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a new server with a tiny model, and texts for it."""
    start, _ = SERVERS[server]
    with temporary() as name:
        texts = export_tiny(folder := Path(name))
        with start(folder, MODEL) as process:
            yield process.address, texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--strings", type=int, default=10_000, help="strings (10000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the strings (1)")
    parser.add_argument("--clients", type=int, default=1, help="clients (1)")
    parser.add_argument("--server", choices=SERVERS, default="tests", help="(tests)")
    parser.add_argument("--address", help="host:port of a running server")
    parser.add_argument("--model", default=MODEL, help=f"its name there ({MODEL})")
    options = parser.parse_args()
    _, wire = SERVERS[options.server]
    with contextlib.ExitStack() as stack:
        if options.address is None:
            address, texts = stack.enter_context(served(options.server))
        else:
            address, texts = options.address, random_texts()
        translate = wire(address, options.model)
        slowest = fuzz(translate, texts, options.strings, options.seed, options.clients)
    print(f"{options.strings:,} strings translated; slowest request {slowest:.2f} s")


if __name__ == "__main__":
    main()
