"""The speed-up of training by several processes, on as many cores."""

import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import typer
from measuring import Report
from measuring import TableRow

from keras_attnvariants.training.progress import read_log

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# All sentences are equally long, so that one shape is compiled, once.
SYLLABLES = ["".join(pair) for pair in itertools.product("bcdfghklmnprst", "aeiou")]
SENTENCES = {"train": 20_000, "validation": 64}
# Syllables, letters, the mark of a space and the special tokens.
VOCABULARY = 94
PERIODS = 4
TEXT = (
    "`kav train` on JAX. Processes share the cores, exchange the gradients of each "
    "update over the network of the machine, and divide the batch that one process "
    "has. Target tokens per second are those of the clock, from the second of "
    "{periods} periods of {updates} updates on; the first one compiles. Efficiency is "
    "how many times as fast as one process with one core, divided by the cores."
)


def write_corpus(folder: Path, words: int) -> Path:
    """Writes pairs of sentences of this many words, each of them one subword."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    for split, count in SENTENCES.items():
        for language in ("xx", "yy"):
            lines = (" ".join(rng.choice(SYLLABLES, words)) for _ in range(count))
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text)
    return folder


def free_address() -> str:
    """An address on this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def speed(
    command: Sequence[str], run: Path, processes: int, cores: Collection[int]
) -> float:
    """Target tokens per second of a training by several processes.

    Raises:
        RuntimeError: a process failed.
    """
    team: list[list[str]] = [[]]
    if processes > 1:
        where = ["--coordinator", free_address(), "--processes", str(processes)]
        team = [[*where, "--process", str(number)] for number in range(processes)]
    train([[*command, "--run", str(run), *options] for options in team], cores)
    events = read_log(run / "log.jsonl")
    steps, rates = zip(
        *(
            (e["step"], e["tokens_per_second"])
            for e in events
            if e["event"] == "updates"
        ),
        strict=True,
    )
    updates = [after - before for before, after in itertools.pairwise(steps)]
    return statistics.harmonic_mean(rates[1:], updates)


def train(commands: Sequence[Sequence[str]], cores: Collection[int]) -> None:
    """Runs programs in parallel on these cores, until all end or one fails.

    Raises:
        RuntimeError: one failed; the message has its output.
    """
    environment = os.environ | {"KERAS_BACKEND": "jax"}
    with contextlib.ExitStack() as stack:
        started = []
        for command in commands:
            log = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(  # noqa: S603
                command, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            os.sched_setaffinity(process.pid, cores)
            started.append((process, log))
        while any(process.poll() is None for process, _ in started):
            if any(process.poll() for process, _ in started):
                break
            time.sleep(0.1)
        for process, log in started:
            if process.poll():
                log.seek(0)
                raise RuntimeError(f"A training failed:\n{log.read()[-3000:]}")


def rows_of(batch: int, speeds: dict[tuple[int, int], float]) -> list[TableRow]:
    """A row for each number of processes and cores."""
    return [
        {
            "positions of a batch": batch,
            "processes": processes,
            "cores": cores,
            "tokens/s": found,
            "efficiency": found / speeds[1, 1] / cores,
        }
        for (processes, cores), found in speeds.items()
    ]


@app.command()
def main(
    batch: Annotated[
        list[int],
        typer.Option(
            min=64, help="Source and target positions of a batch; repeatable."
        ),
    ] = [8192, 24576],  # noqa: B006
    processes: Annotated[
        int, typer.Option(min=2, help="Processes, as many as cores.")
    ] = 2,
    updates: Annotated[
        int, typer.Option(min=1, max=100, help="Updates in each of 4 periods.")
    ] = 6,
    layers: Annotated[int, typer.Option(min=1, help="Layers of each side.")] = 3,
    width: Annotated[int, typer.Option(min=4, help="Width of the model.")] = 256,
    words: Annotated[int, typer.Option(min=1, help="Words in a sentence.")] = 14,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Tokens per second with one core, and with several cores or processes."""
    cores = sorted(os.sched_getaffinity(0))[:processes]
    if len(cores) < processes:
        raise typer.BadParameter(
            f"there are {len(cores)} cores", param_hint="--processes"
        )
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = write_corpus(folder / "corpus", words)
        for positions in batch:
            settings = {
                "data": corpus,
                "source": "xx",
                "target": "yy",
                "preset": "kav/base/multi30k",
                "vocabulary-size": VOCABULARY,
                "layers": layers,
                "width": width,
                "feed-forward": 4 * width,
                "heads": 4,
                "batch-tokens": positions,
                "precision": "float32",
                "steps": PERIODS * updates,
                "validate-every": updates,
                "score-sentences": 0,
                "samples": 0,
            }
            options = [f"--{key}={value}" for key, value in settings.items()]
            command = [sys.executable, "-m", "keras_attnvariants", "train", *options]
            speeds = {}
            for together, used in ((1, 1), (1, processes), (processes, processes)):
                run = folder / f"{positions}-{together}-{used}"
                speeds[together, used] = speed(command, run, together, cores[:used])
            rows += rows_of(positions, speeds)
    setting = f"{layers} + {layers} layers of {width}, float32"
    text = TEXT.format(periods=PERIODS, updates=updates)
    report = Report("Training by several processes", text, setting, rows)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
