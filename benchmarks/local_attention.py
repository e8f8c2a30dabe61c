"""Does time per token grow with length? Local layers against learned attention."""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import typer
from rich.console import Console
from rich.table import Table

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def layers(num_heads: int, n: int) -> dict[str, keras.layers.Layer]:
    """The layers that are compared, all as encoder attention."""
    return {
        "LocalAttention": kav.LocalAttention(num_heads, n=n),
        "NeuralNgram": kav.NeuralNgram(num_heads, n=n),
        "HardCodedAttention": kav.HardCodedAttention(num_heads),
        "DotProductAttention": kav.DotProductAttention(num_heads),
    }


def program(layer, batch: int, length: int, width: int) -> Callable[[], None]:
    """A compiled forward pass that returns when it is done."""
    x = keras.random.normal((batch, length, width), seed=1)
    mask = keras.ops.ones((batch, length), "bool")

    def forward(x, mask):
        return layer(x, x, value_mask=mask)

    compiled = kav.backend.jit(forward)
    return lambda: keras.ops.convert_to_numpy(compiled(x, mask))


def measure(
    programs: dict[tuple[str, int], Callable[[], None]], runs: int
) -> dict[tuple[str, int], float]:
    """Median seconds of every program.

    All programs run once per round, so that a busy machine slows all of them.
    """
    for run in programs.values():
        run()  # compiles
    seconds = {key: [] for key in programs}
    for _ in range(runs):
        for key, run in programs.items():
            start = time.perf_counter()
            run()
            seconds[key].append(time.perf_counter() - start)
    return {key: statistics.median(values) for key, values in seconds.items()}


def per_token(
    seconds: dict[tuple[str, int], float], short: int, long: int
) -> list[dict[str, str | float]]:
    """One row per layer: time per token at both lengths, and the ratio of the two."""
    return [
        {
            "layer": name,
            f"microseconds_per_token_{short}": 1e6 * seconds[name, short] / long,
            f"microseconds_per_token_{long}": 1e6 * seconds[name, long] / long,
            "ratio": seconds[name, long] / seconds[name, short],
        }
        for name in dict.fromkeys(name for name, _ in seconds)
    ]


@app.command()
def main(
    short: Annotated[int, typer.Option(min=1, help="Tokens per short sequence.")] = 256,
    long: Annotated[int, typer.Option(min=1, help="Tokens per long sequence.")] = 4096,
    width: Annotated[int, typer.Option(min=1, help="Width of the model.")] = 512,
    num_heads: Annotated[int, typer.Option(min=1, help="Heads of every layer.")] = 8,
    n: Annotated[int, typer.Option(min=1, help="Reach of the local layers.")] = 5,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 7,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time per token at two lengths, and their ratio: 1 is a cost linear in length.

    A batch holds as many tokens at both lengths, as many as one long sequence. Prints
    the median of runs of the compiled forward pass, which take turns.
    """
    if long % short:
        typer.echo(
            f"Error: --long must be a multiple of --short. Received: {long}, {short}",
            err=True,
        )
        raise typer.Exit(2)
    programs = {
        (name, length): program(layer, long // length, length, width)
        for name, layer in layers(num_heads, n).items()
        for length in (short, long)
    }
    seconds = measure(programs, runs)
    rows = per_token(seconds, short, long)
    title = f"{kav.backend.name()}, width {width}, {num_heads} heads, n = {n}"
    Console(width=None if sys.stdout.isatty() else 100).print(table(title, rows))
    if output is not None:
        output.write_text(json.dumps({"setting": title, "rows": rows}, indent=2) + "\n")


def table(title: str, rows: list[dict]) -> Table:
    """The rows, with their keys as titles."""
    result = Table(title=f"Time per token in microseconds ({title})")
    for key in rows[0]:
        text = key.replace("microseconds_per_token_", "length ")
        result.add_column(text, justify="left" if key == "layer" else "right")
    for row in rows:
        result.add_row(*(v if isinstance(v, str) else f"{v:.2f}" for v in row.values()))
    return result


if __name__ == "__main__":
    app()
