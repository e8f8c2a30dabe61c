"""The speed of an exported model by threads of an operator and requests at once."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from decoding import Output
from decoding import Work
from decoding import finish
from measuring import Report
from measuring import rounds
from peers import model
from serving import BATCHES
from serving import LENGTH
from serving import SIZES
from serving import Form
from serving import Size
from serving import export

BENCHMARKS = Path(__file__).resolve().parent

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

TEXT = (
    "Sentences per second of an exported model with random weights, by the clock, in a "
    "process that has TensorFlow and not this package. Each setting has its own "
    "process, which may use all cores; they take turns, and figures are medians."
)


def speeds(path: Path, vocabulary: int, threads: int, clients: int) -> dict[str, float]:
    """Sentences per second by the number of sentences in a request."""
    numbers = map(str, (clients, vocabulary, *BATCHES))
    program = BENCHMARKS / "peers" / "side_by_side.py"
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(program), str(path), *numbers],
        env=os.environ | {"TF_NUM_INTRAOP_THREADS": str(threads)},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@app.command()
def main(
    size: Annotated[Size, typer.Option(help="Width of the model.")] = Size.SMALL,
    cores: Annotated[int, typer.Option(min=2, help="Cores of the machine.")] = 2,
    runs: Annotated[int, typer.Option(min=1, help="Processes of each setting.")] = 3,
    output: Output = None,
) -> None:
    """Sentences per second of base in bfloat16, with a beam of 4."""
    work = Work(*SIZES[size], LENGTH, LENGTH, 4, runs, 1, "")
    settings = [(1, 1), (cores, 1), (cores, cores), (1, cores)]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "weights.npz"
        model.write(weights, work.sizes)
        path = export("base", Form.BFLOAT16, work, weights, 256)
        programs = {
            setting: partial(speeds, path, work.vocabulary, *setting)
            for setting in settings
        }
        found = rounds(programs, runs)
    rows = [
        {"threads of an operator": threads, "requests at once": clients}
        | {
            f"sentences of {batch}": statistics.median(
                each[str(batch)] for each in found[threads, clients]
            )
            for batch in BATCHES
        }
        for threads, clients in settings
    ]
    setting = f"base, bfloat16, width {size.value}, {LENGTH} tokens in and out"
    finish(Report("Threads of an exported model", TEXT, setting, rows), output)


if __name__ == "__main__":
    app()
