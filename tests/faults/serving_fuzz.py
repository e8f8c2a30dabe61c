"""Sends strings of rubbish over gRPC, among sentences that must not change.

    python -m tests.faults.serving_fuzz --count 10000

Every string gets a translation that is valid UTF-8, in time; the sentences in the same
requests are translated as they are alone. The server is the one of the tests.
"""

import argparse
import random
import time
from pathlib import Path

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from tests.faults.serving import MAX_BATCH
from tests.faults.serving import MODEL
from tests.faults.serving import ServerProcess
from tests.faults.serving import export_tiny
from tests.faults.serving import temporary
from tests.serving.tools import RUBBISH

SENTENCES = 3  # among the strings of a request
SECONDS = 60


def rubbish(draw: random.Random) -> bytes:
    """A string: of hostile parts, of random bytes, or huge."""
    kind = draw.random()
    if kind < 0.01:
        return draw.choice([b"\0", b"a", b"\xf0\x9f\x98", b"\xe2\x96\x81"]) * 65_536
    if kind < 0.4:
        return draw.randbytes(draw.randint(0, 300))
    return b"".join(draw.choices(RUBBISH, k=draw.randint(0, 40)))


class Wire:
    """Translates bytes with the messages of TensorFlow Serving, without a client."""

    def __init__(self, address: str):
        channel = grpc.insecure_channel(address)
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def __call__(self, texts: list[bytes]) -> list[str]:
        """Translations; raises if one is no valid UTF-8."""
        request = predict_pb2.PredictRequest()
        request.model_spec.name = MODEL
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
        reply = self.stub.Predict(request, timeout=SECONDS)
        found = tf.make_ndarray(reply.outputs["translations"])
        return [translation.decode("utf-8") for translation in found]


def fuzz(address: str, texts: list[str], count: int, seed: int) -> float:
    """Sends so many strings; returns the seconds of the slowest request."""
    draw, translate = random.Random(seed), Wire(address)
    alone = {text: translate([text.encode()])[0] for text in texts[:50]}
    slowest, done = 0.0, 0
    while done < count:
        size = min(MAX_BATCH - SENTENCES, count - done)
        batch = [rubbish(draw) for _ in range(size)]
        sentences = draw.sample(list(alone), SENTENCES)
        for sentence in sentences:
            batch.insert(draw.randint(0, len(batch)), sentence.encode())
        begin = time.monotonic()
        found = translate(batch)
        slowest = max(slowest, time.monotonic() - begin)
        assert len(found) == len(batch)
        for sentence in sentences:
            translation = found[batch.index(sentence.encode())]
            assert translation == alone[sentence], sentence
        done += size
    return slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="strings (10000)")
    parser.add_argument("--seed", type=int, default=1, help="of the strings (1)")
    options = parser.parse_args()
    with temporary() as name:
        texts = export_tiny(folder := Path(name))
        with ServerProcess(folder) as server:
            slowest = fuzz(server.address, texts, options.count, options.seed)
    print(f"{options.count:,} strings translated; slowest request {slowest:.2f} s")


if __name__ == "__main__":
    main()
