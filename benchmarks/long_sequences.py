"""Time and memory per token by length, for local layers and learned attention."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from typing import Any

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import passes
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio
from peak import in_own_process
from peak import peak
from rich.progress import track

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BAR = 1.3
BASELINE = "DotProductAttention"
NAMES = (
    "HardCodedAttention",
    "NeuralNgram",
    "ConcatenatedNgram",
    "LocalAttention",
    "LinearAttention",
    BASELINE,
)
LAYERS = [(name, side) for name in NAMES for side in ("encoder", "decoder")]
PASSES = (passes.forward, passes.forward_and_backward)
SENTENCES = 16  # decoded together

TEXT = (
    "Time per token of self-attention on long sequences, divided by that on short "
    "ones: 1 means that the cost is linear in length. Batches hold the same number "
    "of tokens at every length. The decoding steps are those of the last position. "
    "Memory is the peak of a forward and backward pass, without inputs and weights."
)


def layer(name: str, side: str, width: int, num_heads: int, n: int):
    """A built layer of the given class, for the encoder or the decoder."""
    causal = side == "decoder"
    options: dict[str, dict[str, Any]] = {
        "HardCodedAttention": {"offsets": (-1, 0) if causal else (-1, 1)},
        "NeuralNgram": {"n": n, "causal": causal},
        "ConcatenatedNgram": {"n": n, "causal": causal, "hidden_dim": width},
        "LocalAttention": {"n": n},
    }
    heads = {} if name == "ConcatenatedNgram" else {"num_heads": num_heads}
    built = getattr(kav, name)(**heads, **options.get(name, {}))
    built.build((None, None, width), (None, None, width))
    return built


def programs(
    sizes: dict[str, int], lengths: list[int], tokens: int, xla: bool
) -> dict[tuple, Callable[[], Any]]:
    """All programs to time, compiled, by layer, side, pass and length."""
    result = {}
    for name, side in track(LAYERS, "Compiling", disable=not sys.stdout.isatty()):
        built, causal = layer(name, side, **sizes), side == "decoder"
        for length in lengths:
            shape = (tokens // length, length, sizes["width"])
            for make in PASSES:
                run = make(built, shape, causal, xla)
                result[name, side, make.__name__, length] = run
            if causal:
                shape = (SENTENCES, 1, sizes["width"])
                run = passes.steps(built, shape, length - 1, xla)
                result[name, side, "steps", length] = run
    for run in result.values():
        run()
    return result


def memory(
    policy: str, sizes: dict[str, int], lengths: list[int], tokens: int, xla: bool
) -> dict[tuple, float]:
    """Bytes per token of a forward and backward pass, by layer, side and length."""
    keras.config.set_dtype_policy(policy)
    result = {}
    for name, side in LAYERS:
        built = layer(name, side, **sizes)
        for length in lengths:
            shape = (tokens // length, length, sizes["width"])
            run = passes.forward_and_backward(built, shape, side == "decoder", xla)
            result[name, side, length] = peak(run) / tokens
    return result


def report_rows(seconds: dict, memories: dict, short: int, long: int) -> list[TableRow]:
    """One row per layer and side: ratios of times, and memory at every length."""
    lengths = sorted({length for *_, length in memories})
    tokens = dict.fromkeys(key[:2] for key in seconds)
    rows = []
    for name, side in tokens:
        row: TableRow = {"layer": name, "side": side}
        for title in ("forward", "forward_and_backward", "steps"):
            times = [seconds.get((name, side, title, size)) for size in (short, long)]
            column = title.replace("_", " ")
            row[column] = ratio(times[1], times[0]) if times[0] else None
        row["bar"] = None if name == BASELINE else BAR
        for length in lengths:
            row[f"KiB per token, {length:,}"] = memories[name, side, length] / 1024
        rows.append(row)
    return rows


@app.command()
def main(
    short: Annotated[int, typer.Option(min=1, help="Tokens per short sequence.")] = 256,
    long: Annotated[int, typer.Option(min=1, help="Tokens per long sequence.")] = 4096,
    width: Annotated[int, typer.Option(min=1, help="Width of the layers.")] = 512,
    num_heads: Annotated[int, typer.Option(min=1, help="Heads of every layer.")] = 8,
    n: Annotated[int, typer.Option(min=1, help="Reach of the local layers.")] = 5,
    policy: Annotated[str, typer.Option(help="Dtype policy.")] = "float32",
    jit: Annotated[bool, typer.Option(help="Whether XLA compiles.")] = True,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each program.")] = 7,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time and memory per token at two lengths, which show whose cost is linear.

    A batch holds the tokens of one long sequence at both lengths. Ratios
    are medians over rounds, in which all programs take turns. Memory is also measured
    at a length between the two; that takes Linux.
    """
    if long % short:
        typer.echo(
            f"Error: --long must be a multiple of --short. Received: {long}, {short}",
            err=True,
        )
        raise typer.Exit(2)
    keras.config.set_dtype_policy(policy)
    sizes = {"width": width, "num_heads": num_heads, "n": n}
    seconds = in_turns(programs(sizes, [short, long], long, jit), runs)
    between = short * round((long / short) ** 0.5)
    lengths = [short, between, long]
    memories = in_own_process(memory, policy, sizes, lengths, long, jit)
    rows = report_rows(seconds, memories, short, long)
    setting = (
        f"{kav.backend.name()}, {policy}, XLA {'on' if jit else 'off'}, "
        f"width {width}, {num_heads} heads, n = {n}, length {long:,} over {short:,}, "
        f"{long:,} tokens"
    )
    report = Report(
        "Long sequences", TEXT, setting, rows, ("forward and backward",), at_most=True
    )
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
