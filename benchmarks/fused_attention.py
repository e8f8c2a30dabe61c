"""Attention by the kernel of a GPU and by plain products, forward and backward.

    KERAS_BACKEND=jax python benchmarks/fused_attention.py

It shows from how many keys on the kernel is faster (`KERNEL_KEYS` of
`keras_attnvariants/backend/softmax.py`).
"""

from pathlib import Path
from typing import Annotated

import jax
import typer
from keras import ops
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio

from keras_attnvariants.backend import fused_attention

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

LENGTHS = [32, 128, 256, 512, 1024, 4096]
TOKENS = 8192  # of a batch
REPETITIONS = 20  # in a run
TEXT = (
    "Milliseconds of attention in bfloat16 with a mask of keys, forward and backward, "
    "without projections. Batches have the same number of tokens at every length. A "
    "ratio below 1 means that the kernel is faster."
)


def program(rows: int, length: int, heads: int, dim: int, flash: bool):
    """A function that computes attention and its gradients several times."""
    shape = rows, length, heads, dim
    x = jax.random.normal(jax.random.key(0), shape, "bfloat16")
    mask = ops.ones((rows, 1, length), "bool")

    def loss(q, k, v):
        found = fused_attention((q, k, v), mask, False, None, flash)
        return ops.sum(ops.cast(found, "float32"))

    gradients = jax.jit(jax.grad(loss, (0, 1, 2)))
    jax.block_until_ready(gradients(x, x, x))

    def run() -> None:
        for _ in range(REPETITIONS):
            found = gradients(x, x, x)
        jax.block_until_ready(found)

    return run


@app.command()
def main(
    length: Annotated[
        list[int], typer.Option(min=1, max=TOKENS, help="Tokens of a sequence.")
    ] = LENGTHS,
    heads: Annotated[int, typer.Option(min=1, help="Heads of attention.")] = 8,
    dim: Annotated[int, typer.Option(min=1, help="Width of a head.")] = 64,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each program.")] = 5,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Times of the kernel and of products by length."""
    rows: list[TableRow] = []
    for each in length:
        sizes = TOKENS // each, each, heads, dim
        try:
            programs = {
                "products": program(*sizes, flash=False),
                "kernel": program(*sizes, flash=True),
            }
        except (RuntimeError, ValueError) as error:
            typer.echo(f"There is no kernel for length {each}: {error}", err=True)
            raise typer.Exit(1) from error
        seconds = in_turns(programs, runs)
        times = {k: 1e3 * min(v) / REPETITIONS for k, v in seconds.items()}
        kernel = ratio(seconds["kernel"], seconds["products"])
        rows.append({"length": each, **times, "kernel / products": kernel})
    setting = f"{jax.devices()[0].device_kind}, {heads} heads of {dim}, {TOKENS} tokens"
    report = Report("Attention kernels of a GPU", TEXT, setting, rows)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
