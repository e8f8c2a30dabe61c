"""Memory and times of many mixed requests to an exported model."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from typing import Any

import keras
import numpy as np
import typer
from decoding import DecodingPrecision
from decoding import Output
from decoding import finish
from measuring import Report
from measuring import TableRow
from peers import model
from peers.ours import POLICIES
from peers.process import BENCHMARKS
from serving import QUICKSTART
from serving import never_predict

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# Growth of memory from request 500 on, and the slowest request over the median.
MEMORY_BAR, SLOWEST_BAR = 2.0, 3.0

TEXT = (
    "The model `kav/hc-sa/bible`, with random weights, exported and asked in one "
    "process by TensorFlow alone: requests of 1 to 8 sentences, whose longest has 1 to"
    " 60 tokens, in random order, by one thread and by eight at the same time, after "
    "one request for each width of sources and number of sentences. Memory is that of "
    "the whole process. A request is compared with the median of those of the same "
    "width and number of sentences, in seconds that the processor spent on it: the "
    "session leaves each request to the thread that sent it. By the clock, a request "
    "also waits for those of the seven other threads, as the operating system decides."
)

WIDEST = 64


def export(folder: Path, precision: str, options: dict[str, Any]) -> tuple[Path, int]:
    """A model `kav/hc-sa/bible` for token ids, and the size of its vocabulary."""
    keras.config.set_dtype_policy(POLICIES[precision])
    made = kav.presets.get(QUICKSTART).build(**options)
    never_predict(model.SPECIAL_IDS, made)
    # Translations are as long as their sources.
    made.search_settings = kav.models.SearchSettings(extra_length=0)
    path = kav.serving.export(made, None, folder, max_tokens=WIDEST)
    return path, made.vocabulary_size


def send(path: Path, vocabulary: int, threads: int, requests: int) -> dict[str, Any]:
    """The measurements of `peers.mixed`, in a separate process."""
    options = {
        "path": str(path),
        "vocabulary": vocabulary,
        "threads": threads,
        "requests": requests,
    }
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "peers.mixed", json.dumps(options)],
        check=True,
        stdout=subprocess.PIPE,
        cwd=BENCHMARKS,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(threads: int, found: dict[str, Any]) -> list[TableRow]:
    """The rows of one number of threads: memory, and the times of each width."""
    name = "1 thread" if threads == 1 else f"{threads} threads"
    warm, early, end = found["memory"]
    rows: list[TableRow] = [
        {
            "program": name,
            "measurement": "growth from request 500 on, %",
            "measured": 100 * (end / early - 1),
            "bar": MEMORY_BAR,
            "in all": f"{warm / 1e6:.0f} MB after the warm-up, {early / 1e6:.0f} MB at "
            f"request 500, {end / 1e6:.0f} MB at the end of them",
        }
    ]
    lowest = 1
    for width in sorted({width for width, *_ in found["seconds"]}):
        cells = [cell[2:] for cell in found["seconds"] if cell[0] == width]
        processor, clock = zip(*cells, strict=True)
        count = sum(map(len, clock))
        rows.append(
            {
                "program": name,
                "measurement": f"slowest over the median, {lowest} to {width} tokens",
                "measured": slowest(processor),
                "bar": SLOWEST_BAR,
                "in all": f"{percentiles(processor)} of {count} requests; "
                f"by the clock {percentiles(clock)}, slowest {slowest(clock):.1f}",
            }
        )
        lowest = width + 1
    return rows


def slowest(cells: Sequence[Sequence[float]]) -> float:
    """The largest ratio of a request's time to the median of its kind."""
    return max(float(max(each) / np.median(each)) for each in cells)


def percentiles(cells: Sequence[Sequence[float]]) -> str:
    """The usual percentiles of all requests, in milliseconds."""
    p50, p95, p99 = np.percentile(1e3 * np.concatenate(cells), [50, 95, 99])
    return f"p50 {p50:.0f}, p95 {p95:.0f}, p99 {p99:.0f} ms"


@app.command()
def main(
    threads: Annotated[
        list[int], typer.Option(min=1, help="Threads that send requests at once.")
    ] = [1, 8],  # noqa: B006
    requests: Annotated[
        int, typer.Option(min=501, help="Requests after the warm-up.")
    ] = 2000,
    precision: Annotated[
        DecodingPrecision, typer.Option(help="Precision of the export.")
    ] = DecodingPrecision.BFLOAT16,
    width: Annotated[
        int | None, typer.Option(min=8, help="Width of the model; default: its own.")
    ] = None,
    output: Output = None,
) -> None:
    """Memory and times of mixed requests to an exported `kav/hc-sa/bible`."""
    sizes = {} if width is None else {"hidden_dim": width, "intermediate_dim": width}
    rows: list[TableRow] = []
    with tempfile.TemporaryDirectory() as folder:
        path, vocabulary = export(Path(folder), precision, sizes)
        for number in threads:
            rows += rows_of(number, send(path, vocabulary, number, requests))
    setting = f"{QUICKSTART}, {precision}, {requests:,} requests"
    title = "Mixed requests to an exported model"
    report = Report(title, TEXT, setting, rows, ("measured",), at_most=True)
    finish(report, output)


if __name__ == "__main__":
    app()
