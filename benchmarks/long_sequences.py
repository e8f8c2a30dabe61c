"""Does time per token grow with length? Local layers against learned attention."""

import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import typer
from measuring import Report
from measuring import Row
from measuring import in_turns
from measuring import ratio

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BAR = 1.3
BASELINE = "DotProductAttention"
PASSES = ("forward", "forward and backward")

TEXT = (
    "Time per token of long sequences over that of short ones; 1 is a cost linear in "
    "length. A batch holds as many tokens at both lengths. Forward is one call of the "
    "layer, backward the gradients of its input and of all its weights. Learned "
    "attention stands beside the layers that look at neighbours only."
)

Program = tuple[str, str, int]


def layers(num_heads: int, n: int) -> dict[str, tuple[keras.layers.Layer, dict]]:
    """The layers that are compared, and how they are called."""
    causal = {"use_causal_mask": True}
    return {
        "HardCodedAttention": (kav.HardCodedAttention(num_heads), {}),
        "HardCodedAttention, causal": (
            kav.HardCodedAttention(num_heads, offsets=(-1, 0)),
            causal,
        ),
        "NeuralNgram": (kav.NeuralNgram(num_heads, n=n), {}),
        "NeuralNgram, causal": (kav.NeuralNgram(num_heads, n=n, causal=True), causal),
        "LocalAttention": (kav.LocalAttention(num_heads, n=n), {}),
        "LocalAttention, causal": (kav.LocalAttention(num_heads, n=n), causal),
        BASELINE: (kav.DotProductAttention(num_heads), {}),
    }


def program(layer, options, kind: str, x, xla: bool) -> Callable[[], None]:
    """A compiled pass over a batch `[B, L, width]` that returns when it is done."""
    mask = keras.ops.ones(x.shape[:2], "bool")

    def forward(x, mask):
        return layer(x, x, value_mask=mask, **options)

    function = forward if kind == PASSES[0] else with_gradients(layer, forward)
    compiled = kav.backend.jit(function, xla=xla)

    def run():
        outputs = keras.tree.flatten(compiled(x, mask))
        # One number of each is as late as all of it, and cheaper to fetch.
        for output in outputs:
            keras.ops.convert_to_numpy(keras.ops.ravel(output)[0])

    return run


def with_gradients(layer, forward):
    """A function of the input that computes all gradients of the sum of squares."""
    if kav.backend.name() == "jax":
        import jax

        variables = layer.trainable_variables

        def loss(weights, x, mask):
            pairs = list(zip(variables, weights, strict=True))
            with keras.StatelessScope(state_mapping=pairs):
                return keras.ops.sum(keras.ops.square(forward(x, mask)))

        values = [variable.value for variable in variables]
        return lambda x, mask: jax.grad(loss, (0, 1))(values, x, mask)
    import tensorflow as tf

    def gradients(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = keras.ops.sum(keras.ops.square(forward(x, mask)))
        weights = [variable.value for variable in layer.trainable_variables]
        return tape.gradient(loss, [x, *weights])

    return gradients


def rows_of(
    seconds: dict[Program, list[float]], short: int, long: int, tokens: int
) -> list[Row]:
    """One row per layer and pass: time per token at both lengths, and the ratio."""

    def microseconds(times):
        return 1e6 * statistics.median(times) / tokens

    return [
        {
            "layer": name,
            "pass": kind,
            f"microseconds per token, length {short}": microseconds(
                seconds[name, kind, short]
            ),
            f"length {long}": microseconds(seconds[name, kind, long]),
            "ratio": ratio(seconds[name, kind, long], seconds[name, kind, short]),
            "bar": None if name == BASELINE else BAR,
        }
        for name, kind in dict.fromkeys((name, kind) for name, kind, _ in seconds)
    ]


@app.command()
def main(
    short: Annotated[int, typer.Option(min=1, help="Tokens per short sequence.")] = 256,
    long: Annotated[int, typer.Option(min=1, help="Tokens per long sequence.")] = 4096,
    width: Annotated[int, typer.Option(min=1, help="Width of the model.")] = 512,
    num_heads: Annotated[int, typer.Option(min=1, help="Heads of every layer.")] = 8,
    n: Annotated[int, typer.Option(min=1, help="Reach of the local layers.")] = 5,
    policy: Annotated[str, typer.Option(help="Dtype policy.")] = "float32",
    jit: Annotated[bool, typer.Option(help="Whether XLA compiles.")] = True,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 7,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time per token at two lengths, and their ratio: 1 is a cost linear in length."""
    if long % short:
        typer.echo(
            f"Error: --long must be a multiple of --short. Received: {long}, {short}",
            err=True,
        )
        raise typer.Exit(2)
    keras.config.set_dtype_policy(policy)
    programs = {}
    for name, (layer, options) in layers(num_heads, n).items():
        for length in (short, long):
            shape = (long // length, length, width)
            x = keras.random.normal(shape, seed=1, dtype=layer.compute_dtype)
            layer(x, x)  # builds
            for kind in PASSES:
                programs[name, kind, length] = program(layer, options, kind, x, jit)
    for run in programs.values():
        run()  # compiles
    rows = rows_of(in_turns(programs, runs), short, long, tokens=long)
    setting = (
        f"{kav.backend.name()}, {policy}, XLA {'on' if jit else 'off'}, width {width}, "
        f"{num_heads} heads, n = {n}"
    )
    report = Report("Time per token of long sequences", TEXT, setting, rows)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
