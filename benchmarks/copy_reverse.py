"""A minimal test of attention: models learn to copy and to reverse sequences."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import typer
from keras import ops
from rich.console import Console
from rich.progress import track
from rich.table import Table

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

TASKS = ("copy", "reverse")
SHORTEST, LONGEST = 5, 20
SPECIAL = 4  # padding, unknown, begin, end
SYMBOLS = 28
BATCH = 64
PERIOD = 250  # updates between two validations
SIZES = {
    "vocabulary_size": SPECIAL + SYMBOLS,
    "num_layers": 2,
    "hidden_dim": 64,
    "intermediate_dim": 128,
    "num_heads": 4,
    "dropout": 0.0,
}


def examples(task: str, count: int, rng: np.random.Generator):
    """Model inputs, labels and weights of random sequences.

    A source ends with the end symbol, so that a model can tell its length.
    """
    lengths = rng.integers(SHORTEST, LONGEST + 1, (count, 1))
    positions = np.arange(LONGEST)
    symbols = rng.integers(SPECIAL, SPECIAL + SYMBOLS, (count, LONGEST))
    order = positions if task == "copy" else np.maximum(lengths - 1 - positions, 0)
    target = np.take_along_axis(symbols, np.broadcast_to(order, symbols.shape), 1)
    source, labels = (closed(sequence, lengths) for sequence in (symbols, target))
    begin = np.full((count, 1), 2)
    inputs = {
        "source_ids": source.astype("int32"),
        "target_ids": np.hstack([begin, labels[:, :-1]]).astype("int32"),
    }
    return inputs, labels.astype("int32"), (labels > 0).astype("float32")


def closed(sequence: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The sequences, cut to their lengths, with an end symbol and padding."""
    wide = np.pad(sequence, ((0, 0), (0, 1)))
    position = np.arange(wide.shape[1])
    return np.where(position < lengths, wide, 3 * (position == lengths))


def batches(task: str, *seeds: int) -> Iterator:
    """Endless training data."""
    rng = np.random.default_rng(seeds)
    while True:
        yield examples(task, BATCH, rng)


def compiled(preset: kav.presets.Preset, updates: int) -> keras.Model:
    """A small model of the preset, ready to train."""
    known = {k: v for k, v in SIZES.items() if k in preset.options}
    model = preset.build(**known)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, updates, alpha=0.05, warmup_target=2e-3, warmup_steps=updates // 10
    )
    model.compile(
        keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def restart(model: keras.Model, preset: kav.presets.Preset, seed: int) -> None:
    """Sets new random weights, and resets the optimizer."""
    keras.utils.set_random_seed(seed)
    fresh = preset.build(**{k: v for k, v in SIZES.items() if k in preset.options})
    model.set_weights(fresh.get_weights())
    for variable in model.optimizer.variables:
        if "learning_rate" not in variable.path:
            variable.assign(ops.zeros_like(variable))


def accuracy(model: keras.Model, held_out) -> float:
    """Share of tokens, end symbols included, that the model finds most probable."""
    inputs, labels, weights = held_out
    logits = model.predict(inputs, batch_size=256, verbose=0)
    return float(np.average(logits.argmax(-1) == labels, weights=weights))


def learn(
    model: keras.Model, task: str, seed: int, updates: int, target: float
) -> dict[str, float]:
    """Trains until the target is reached: updates and accuracy at the end."""
    held_out = examples(task, 512, np.random.default_rng(10**6 + seed))
    done, reached = 0, 0.0
    while done < updates and reached < target:
        # New data each time, because `fit` prefetches more batches than it uses.
        data = batches(task, seed, done)
        model.fit(data, steps_per_epoch=PERIOD, shuffle=False, verbose=0)
        done += PERIOD
        reached = accuracy(model, held_out)
    return {"updates": done, "accuracy": round(reached, 4)}


@app.command()
def main(
    presets: Annotated[
        list[str] | None,
        typer.Argument(help="Names of presets; all of kav/*/multi30k if none is given"),
    ] = None,
    updates: Annotated[
        int, typer.Option(min=PERIOD, help="Most updates of a training run.")
    ] = 4000,
    seeds: Annotated[int, typer.Option(min=1, help="Training runs of each model.")] = 3,
    target: Annotated[float, typer.Option(help="Token accuracy to stop at.")] = 0.98,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, a JSON line for each.")
    ] = None,
) -> None:
    """Trains small models of presets to copy and to reverse random sequences.

    Sequences have 5 to 20 of 28 symbols; models have 2 + 2 layers of width 64.
    Accuracy is that of 512 sequences that no training sees.
    """
    names = presets or [
        name
        for name in kav.presets.names()
        if name.startswith("kav/") and name.endswith("/multi30k")
    ]
    rows = []
    for name in track(names, "Training", disable=not sys.stdout.isatty()):
        preset = kav.presets.get(name)
        model = compiled(preset, updates)
        for task in TASKS:
            runs = []
            for seed in range(seeds):
                restart(model, preset, seed)
                runs.append(learn(model, task, seed, updates, target))
            rows.append({"preset": name, "task": task, "runs": runs})
            if output is not None:
                with output.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    Console(width=None if sys.stdout.isatty() else 100).print(table(rows))


def table(rows: list[dict]) -> Table:
    """One line per preset and task."""
    result = Table(title=f"Updates, and token accuracy then ({kav.backend.name()})")
    for title in ("preset", "task", "updates", "accuracy"):
        result.add_column(title)
    for row in rows:
        columns = (
            ", ".join(str(run[key]) for run in row["runs"])
            for key in ("updates", "accuracy")
        )
        result.add_row(row["preset"], row["task"], *columns)
    return result


if __name__ == "__main__":
    app()
