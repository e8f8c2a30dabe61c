"""Requests to an exported model, profiled by operator, with TensorFlow alone.

Prints, for each number of sentences, the CPU seconds of a request without the profiler,
and the number and the seconds of each kind of operator in a request with it. The
profiler leaves out operators that TensorFlow considers short.
"""

import collections
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from side_by_side import random_sources
from tensorflow.tsl.profiler.protobuf import xplane_pb2

# The names of operators in a profile: node and kind.
OPERATOR = re.compile(r"[^:]+:(\w+)")
# CPU seconds of requests that are timed, at least.
SECONDS = 2.0


def main(path: str, vocabulary: int, batches: list[int]) -> None:
    """Times and profiles a request of each size."""
    translate = tf.saved_model.load(path).signatures["translate_ids"]
    rng = np.random.default_rng(1)
    found = {}
    for batch in batches:
        inputs = random_sources(vocabulary, batch, rng)

        def request(inputs=inputs) -> None:
            translate(**inputs)["ids"].numpy()

        request(), request()
        found[batch] = {"seconds": seconds(request), "operators": operators(request)}
    print(json.dumps(found))


def seconds(request) -> float:
    """The CPU seconds of a request."""
    start, count = time.process_time(), 0
    while time.process_time() - start < SECONDS:
        request()
        count += 1
    return (time.process_time() - start) / count


def operators(request) -> dict[str, tuple[int, float]]:
    """The number and the seconds of each kind of operator in a request."""
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            request()
        [file] = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    counts, picoseconds = collections.Counter(), collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                if found := OPERATOR.fullmatch(name):
                    kind = found[1]
                    counts[kind] += 1
                    picoseconds[kind] += event.duration_ps
    return {kind: (counts[kind], picoseconds[kind] / 1e12) for kind in counts}


if __name__ == "__main__":
    path, *numbers = sys.argv[1:]
    vocabulary, *batches = map(int, numbers)
    main(path, vocabulary, batches)
