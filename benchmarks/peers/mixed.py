"""Sends mixed requests to an exported model: `python -m peers.mixed OPTIONS`.

`OPTIONS` is a JSON object: the `path` of the export, the number of `threads` that send
requests at the same time, and the number of `requests`. Prints a JSON object: `memory`,
bytes of the process after the warm-up, at request 500 and at the end, and `seconds`, a
list for every width of sources and number of sentences, with two lists for its
requests: CPU seconds and elapsed seconds.

The export runs in a session, as in TensorFlow Serving. A session can share the work of
all requests among its own threads; this one leaves each request to the thread that
sends it, so that the CPU seconds of each request can be measured.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from peak import resident
from tensorflow.core.protobuf import config_pb2

WIDTHS = (8, 16, 24, 32, 48, 64)  # length buckets of exports, for the lengths below
LONGEST = 60
LARGEST_BATCH = 8
EARLY = 500  # requests after which memory must not grow


def lengths_of(draw: np.random.Generator) -> np.ndarray:
    """Lengths of the sources of a request; one has the length drawn first."""
    longest = draw.integers(1, LONGEST + 1)
    others = draw.integers(1, longest + 1, draw.integers(0, LARGEST_BATCH))
    return np.array([longest, *others], "int32")


def cell(lengths: np.ndarray) -> tuple[int, int]:
    """Width and number of sentences: equal in requests of about the same cost."""
    return next(w for w in WIDTHS if w >= max(lengths)), len(lengths)


def loaded(path: str) -> Callable[[np.ndarray, np.ndarray], list[np.ndarray]]:
    """A function that translates ids `[n, length]` with their lengths `[n]`."""
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=-1
    )
    session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
    with session.graph.as_default():
        model = tf.compat.v1.saved_model.load(session, ["serve"], path)
    signature = model.signature_def["translate_ids"]
    inputs = (signature.inputs[name].name for name in ("source_ids", "lengths"))
    options = config_pb2.CallableOptions(
        feed=inputs, fetch=[signature.outputs["ids"].name]
    )
    return session._make_callable_from_options(options)


def main() -> None:
    """Warms up, sends all requests, and prints the measurements."""
    options = json.loads(sys.argv[1])
    translate, draw = loaded(options["path"]), np.random.default_rng(2)

    def send(lengths: np.ndarray) -> tuple[float, float]:
        shape = len(lengths), max(lengths)
        ids = draw_ids(lengths, shape, options["vocabulary"])
        start = time.thread_time(), time.perf_counter()
        translate(ids, lengths)
        return time.thread_time() - start[0], time.perf_counter() - start[1]

    warm_up = [
        np.full(size, min(width, LONGEST), "int32")
        for width in WIDTHS
        for size in range(1, LARGEST_BATCH + 1)
    ]
    requests = [lengths_of(draw) for _ in range(options["requests"])]
    seconds = defaultdict(list)
    memory = []
    with ThreadPoolExecutor(options["threads"]) as pool:
        for part in (warm_up, requests[:EARLY], requests[EARLY:]):
            found = list(pool.map(send, part))
            memory.append(resident("VmRSS"))
            if part is not warm_up:
                for lengths, taken in zip(part, found, strict=True):
                    seconds[cell(lengths)].append(taken)
    cells = [
        [*key, *zip(*found, strict=True)] for key, found in sorted(seconds.items())
    ]
    print(json.dumps({"memory": memory, "seconds": cells}))


def draw_ids(
    lengths: np.ndarray, shape: tuple[int, int], vocabulary: int
) -> np.ndarray:
    """Ids that depend on the lengths alone; the first four are special."""
    rng = np.random.default_rng(lengths)
    return rng.integers(4, vocabulary, shape, "int32")


if __name__ == "__main__":
    main()
