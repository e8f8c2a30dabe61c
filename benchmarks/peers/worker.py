"""Runs one program in this process: `python -m peers.worker PROGRAM OPTIONS`.

`PROGRAM` is a module beside this one that has a class `Engine`, `OPTIONS` a JSON
object. Lines of JSON go out: first `{"load seconds": …, "versions": {…}}`, and then,
for every `{"sources": [B][S], "steps": N}` that comes in, `{"ids": [B][K][N]}`: the
`K` hypotheses of every sentence, best first.
"""

import importlib
import json
import os
import sys
import time

import numpy as np


def serve(engine, lines, answer) -> None:
    """Answers requests until there are no more."""
    for line in lines:
        request = json.loads(line)
        inputs = engine.inputs(np.asarray(request["sources"], "int32"))
        answer({"ids": engine.ids(engine.search(inputs, request["steps"]))})


def main() -> None:
    """Loads a program, says how long that took, and serves."""
    name, options = sys.argv[1], json.loads(sys.argv[2])
    # What libraries print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, options["cores"])
    # Imported here: some libraries count the cores they may use as soon as they load.
    module = importlib.import_module(f"peers.{name}")
    module.convert(options)
    start = time.perf_counter()
    engine = module.Engine(options)
    seconds = time.perf_counter() - start

    def answer(message) -> None:
        print(json.dumps(message), file=answers, flush=True)

    answer({"load seconds": seconds, "versions": module.VERSIONS})
    serve(engine, sys.stdin, answer)


if __name__ == "__main__":
    main()
