"""Controls a program in a separate process."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]


class Program:
    """A process that decodes on request.

    Args:
        python: the interpreter of its environment.
        module: a module of this folder with a class `Engine`.
        options: options of the engine. `threads` and `cores` are also passed to the
            libraries by environment variables, the same for all programs.

    Attributes:
        load_seconds: seconds from the model on disk to one that can decode.
        cpu_seconds: CPU seconds of loading or, after that, of the last decoding, in all
            threads.
        memory: peak of the bytes in use so far, beyond those of the imported program.
        versions: versions of its packages.

    Raises:
        RuntimeError: the process ended before it had answered.
    """

    def __init__(self, python: str | Path, module: str, options: Mapping[str, Any]):
        threads = str(options["threads"])
        paths = str(BENCHMARKS.parent), os.environ.get("PYTHONPATH")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": threads,
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "HF_HUB_OFFLINE": "1",
        }
        self.module = module
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(  # noqa: S603
            [str(python), "-m", "peers.worker", module, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=BENCHMARKS,
            env=environment,
        )
        try:
            ready = self.answer()
        except RuntimeError:
            self.close()
            raise
        self.load_seconds = ready["load seconds"]
        self.versions = ready["versions"]

    def decode(self, sources: list[list[int]], steps: int) -> list:
        """Ids of all hypotheses `[B][K][steps]`."""
        request = {"sources": sources, "steps": steps}
        # If the process has ended, `answer` says why.
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return self.answer()["ids"]

    def answer(self) -> dict[str, Any]:
        """The next line that the process writes."""
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            raise RuntimeError(f"{self.module} failed:\n{self.log.read()[-3000:]}")
        answer = json.loads(line)
        self.cpu_seconds, self.memory = answer["cpu seconds"], answer["memory"]
        return answer

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_) -> None:
        self.close()
