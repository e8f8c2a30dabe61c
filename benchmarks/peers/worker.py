"""Runs one program in this process: `python -m peers.worker PROGRAM OPTIONS`.

`PROGRAM` is a module of this folder with a class `Engine`, `OPTIONS` a JSON object.
The process writes lines of JSON: first `{"load seconds": …, "versions": {…}}`, and
then, for every `{"sources": [B][S], "steps": N}` that it reads, `{"ids": [B][K][N]}`:
the `K` hypotheses of every sentence, best first. Each line has `"cpu seconds"`, the
time of all threads of this process for it, and `"memory"`, the peak of the bytes in
use so far, beyond those of the imported program.
"""

import importlib
import json
import os
import sys
import time

import numpy as np
from peak import forget_peak
from peak import resident

# Other systems do not report the memory of a process like this.
LINUX = sys.platform == "linux"


def serve(engine, lines, answer) -> None:
    """Answers requests until there are no more."""
    for line in lines:
        request = json.loads(line)
        inputs = engine.inputs(np.asarray(request["sources"], "int32"))
        start = time.process_time()
        found = engine.search(inputs, request["steps"])
        seconds = time.process_time() - start
        answer({"ids": engine.ids(found), "cpu seconds": seconds})


def main() -> None:
    """Loads a program, reports how long that took, and serves."""
    name, options = sys.argv[1], json.loads(sys.argv[2])
    # Keeps the output of libraries apart from answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, options["cores"])
    # Imported here: some libraries count the cores they may use as soon as they load.
    module = importlib.import_module(f"peers.{name}")
    module.convert(options)
    before = forget_peak() if LINUX else 0
    start, cpu_start = time.perf_counter(), time.process_time()
    engine = module.Engine(options)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start

    def answer(message) -> None:
        message["memory"] = resident("VmHWM") - before if LINUX else 0
        print(json.dumps(message), file=answers, flush=True)

    loaded = {"load seconds": seconds, "cpu seconds": cpu_seconds}
    answer({**loaded, "versions": module.VERSIONS})
    serve(engine, sys.stdin, answer)


if __name__ == "__main__":
    main()
