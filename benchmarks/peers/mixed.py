"""Sends mixed requests to an exported model: `python -m peers.mixed OPTIONS`.

`OPTIONS` is a JSON object: the `path` of the export, the number of `threads` that send
requests at the same time, and the number of `requests`. Prints a JSON object: `memory`,
bytes of the process after the warm-up, at request 500 and at the end, and `seconds`, a
list for every width of sources and number of sentences: those of the processor if there
is one thread, and else those of the clock.
"""

import json
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from peak import resident

WIDTHS = (8, 16, 24, 32, 48, 64)  # buckets of exports for the lengths below
LONGEST = 60
LARGEST_BATCH = 8
EARLY = 500  # requests before memory has to stay as it is


def lengths_of(draw: np.random.Generator) -> np.ndarray:
    """Tokens of each source of a request; at least one has as many as are drawn."""
    longest = draw.integers(1, LONGEST + 1)
    others = draw.integers(1, longest + 1, draw.integers(0, LARGEST_BATCH))
    return np.array([longest, *others], "int32")


def cell(lengths: np.ndarray) -> tuple[int, int]:
    """What requests of about the same cost have in common: width and sentences."""
    return next(w for w in WIDTHS if w >= max(lengths)), len(lengths)


def main() -> None:
    """Warms up, sends all requests, and prints what was measured."""
    options = json.loads(sys.argv[1])
    translate = tf.saved_model.load(options["path"]).signatures["translate_ids"]
    threads, draw = options["threads"], np.random.default_rng(2)
    clock = time.process_time if threads == 1 else time.perf_counter

    def send(lengths: np.ndarray) -> float:
        shape = len(lengths), max(lengths)
        ids = tf.constant(draw_ids(lengths, shape, options["vocabulary"]))
        start = clock()
        translate(source_ids=ids, lengths=tf.constant(lengths))["ids"].numpy()
        return clock() - start

    warm_up = [
        np.full(size, min(width, LONGEST), "int32")
        for width in WIDTHS
        for size in range(1, LARGEST_BATCH + 1)
    ]
    requests = [lengths_of(draw) for _ in range(options["requests"])]
    seconds = defaultdict(list)
    memory = []
    with ThreadPoolExecutor(threads) as pool:
        for part in (warm_up, requests[:EARLY], requests[EARLY:]):
            found = list(pool.map(send, part))
            memory.append(resident("VmRSS"))
            if part is not warm_up:
                for lengths, taken in zip(part, found, strict=True):
                    seconds[cell(lengths)].append(taken)
    cells = [[*key, found] for key, found in sorted(seconds.items())]
    print(json.dumps({"memory": memory, "seconds": cells}))


def draw_ids(
    lengths: np.ndarray, shape: tuple[int, int], vocabulary: int
) -> np.ndarray:
    """Ids that depend on the lengths alone; the first four are special."""
    rng = np.random.default_rng(lengths)
    return rng.integers(4, vocabulary, shape, "int32")


if __name__ == "__main__":
    main()
