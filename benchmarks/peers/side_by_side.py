"""Requests to an exported model, some at the same time, with TensorFlow alone.

Prints the sentences per second, by the clock, for each number of sentences.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

LENGTH = 30
SENTENCES = 128


def random_sources(vocabulary: int, batch: int, rng) -> dict[str, tf.Tensor]:
    """The inputs of a request with random source tokens."""
    ids = rng.integers(10, vocabulary, (batch, LENGTH)).astype("int32")
    return {"source_ids": tf.constant(ids), "lengths": tf.fill([batch], LENGTH)}


def main(path: str, clients: int, vocabulary: int, batches: list[int]) -> None:
    """Sends requests of each size from `clients` threads, after two to warm up."""
    translate = tf.saved_model.load(path).signatures["translate_ids"]
    rng = np.random.default_rng(1)
    found = {}
    for batch in batches:
        inputs = random_sources(vocabulary, batch, rng)

        def request(_: int, inputs=inputs) -> None:
            translate(**inputs)["ids"].numpy()

        requests = max(2 * clients, min(24, 2 * SENTENCES // batch))
        request(0), request(1)
        start = time.perf_counter()
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(request, range(requests)))
        found[batch] = batch * requests / (time.perf_counter() - start)
    print(json.dumps(found))


if __name__ == "__main__":
    path, *numbers = sys.argv[1:]
    clients, vocabulary, *batches = map(int, numbers)
    main(path, clients, vocabulary, batches)
