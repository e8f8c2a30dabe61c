"""How many tokens fit into memory in training? Slopes of peaks over batch sizes."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import typer
from measuring import Report
from measuring import Row

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

PRESETS = ["base", "hc-sa", "sh-x", "base-no-sa", "sh-x-no-sa"]
BARS = {"hc-sa": 1.17, "sh-x": 1.26}
UPDATES = 2

TEXT = (
    "Peak memory of training (forward, backward, Adam), one process for every model "
    "and number of tokens. The slope over tokens is what a token takes, the intercept "
    "what everything else does: program, weights and optimizer. Tokens that fit are "
    "those whose share of the budget is left after that."
)


@app.command()
def peak(preset: str, batch: int, length: int, policy: str, jit: bool) -> None:
    """Prints the peak memory of this process after some updates, in bytes."""
    import keras

    import keras_attnvariants as kav

    keras.config.set_dtype_policy(policy)
    model = kav.presets.get(preset).build()
    model.compile(
        keras.optimizers.Adam(1e-4),
        kav.training.LabelSmoothedCrossEntropy(0.1),
        jit_compile=jit,
    )
    shape = (3, batch, length)
    ids = np.random.default_rng(1).integers(4, model.vocabulary_size, shape)
    source, target, labels = ids.astype("int32")
    for _ in range(UPDATES):
        model.train_on_batch({"source_ids": source, "target_ids": target}, labels)
    # Linux counts in units of 1,024 bytes.
    typer.echo(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure(preset: str, batch: int, length: int, policy: str, jit: bool) -> int:
    """The peak memory of a process that trains, in bytes."""
    options = [str(value) for value in (batch, length, policy, jit)]
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, "peak", preset, *options],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"Training {preset} failed:\n{done.stderr[-3000:]}")
    return int(done.stdout.split()[-1])


def rows_of(peaks: dict[str, dict[int, float]], budget: float) -> list[Row]:
    """One row per model, from peaks in bytes by number of tokens; the first is base."""
    rows = []
    for name, measured in peaks.items():
        tokens = np.array(list(measured), float)
        slope, rest = np.polyfit(tokens, list(measured.values()), 1)
        fitted = rest + slope * tokens
        off = np.abs(fitted - list(measured.values())).max()
        fit = (budget - rest) / slope
        rows.append(
            {
                "model": name,
                "KiB per token": slope / 2**10,
                "MiB besides": rest / 2**20,
                "largest deviation, MiB": off / 2**20,
                f"tokens in {budget / 2**30:g} GiB": fit,
            }
        )
    for row in rows:
        first = rows[0]
        per_token = first["KiB per token"] / row["KiB per token"]
        row["tokens per memory / base"] = per_token
        tokens = list(row)[4]
        row["tokens that fit / base"] = row[tokens] / first[tokens]
        row["bar"] = BARS.get(row["model"])
    return rows


@app.command()
def main(
    models: Annotated[
        list[str] | None, typer.Argument(help="The first is base.")
    ] = None,
    corpus: Annotated[str, typer.Option(help="Whose presets.")] = "wmt16-en-ro",
    batches: Annotated[list[int], typer.Option("--batch", help="Sentences.")] = (
        16,
        32,
        48,
    ),
    length: Annotated[int, typer.Option(min=1, help="Tokens of each.")] = 32,
    policy: Annotated[str, typer.Option(help="Dtype policy.")] = "float32",
    jit: Annotated[bool, typer.Option(help="Whether XLA compiles.")] = False,
    budget: Annotated[float, typer.Option(min=0.1, help="Memory in GiB.")] = 11.0,
    output: Annotated[Path | None, typer.Option(help="File for the numbers.")] = None,
) -> None:
    """Peak memory per token of training, and the tokens that a budget has room for."""
    peaks = {
        name: {
            batch * length: measure(
                f"you2020/{name}/{corpus}", batch, length, policy, jit
            )
            for batch in batches
        }
        for name in models or PRESETS
    }
    rows = rows_of(peaks, budget * 2**30)
    setting = (
        f"you2020/…/{corpus}, {policy}, XLA {'on' if jit else 'off'}, batches of "
        f"{', '.join(map(str, batches))} x {length} tokens"
    )
    report = Report("Memory of training", TEXT, setting, rows)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
