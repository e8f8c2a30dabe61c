"""The cost of variants in training, compared with learned attention."""

import os
import statistics
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio
from rich.progress import track

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BASELINE = "kav/base/multi30k"
AGAIN = "the baseline again"
VOCABULARY = 8000

# Bars for recurrent cross-attention, by length.
BARS = {32: 1.15, 128: 1.3, 512: 1.3}

TEXT = (
    "The time of an update of a model with each variant, divided by that of the "
    "model with learned attention: same width, depth, batch and precision, dropout "
    "of 0.1. Times are those of the processor."
)


class Mode(StrEnum):
    """Precision and compiler of an update."""

    FLOAT32_XLA = "float32-xla"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"

    @property
    def policy(self) -> str:
        """The dtype policy of the models."""
        return "mixed_bfloat16" if self is Mode.BFLOAT16 else "float32"

    @property
    def jit(self) -> bool:
        """Whether XLA compiles the update."""
        return self is Mode.FLOAT32_XLA


def trainer(
    preset: kav.presets.Preset, sizes: dict[str, int], batch, mode: Mode
) -> Callable[[], None]:
    """A function that makes one update and waits for it."""
    known = {key: size for key, size in sizes.items() if key in preset.options}
    model = preset.build(**known, dropout=0.1, dtype=mode.policy)
    model.compile(
        keras.optimizers.Adam(1e-4),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=mode.jit,
    )
    return lambda: model.train_on_batch(*batch)


def full_batch(batch: int, length: int):
    """Random tokens without padding: inputs and labels."""
    ids = np.random.default_rng(1).integers(4, VOCABULARY, (3, batch, length))
    source, target, labels = ids.astype("int32")
    return {"source_ids": source, "target_ids": target}, labels


def is_recurrent(name: str) -> bool:
    """Whether the cross-attention of a preset is recurrent."""
    if name not in kav.presets.names():
        return False
    return "RecurrentCrossAttention" in kav.presets.get(name).attention


def measured(
    mode: Mode, models: dict[str, str], sizes: dict[str, int], batch, runs: int
) -> dict[str, list[float]]:
    """Seconds of the updates of presets by name, in a mode."""
    trainers = {}
    for name in track(models, f"Compiling, {mode}", disable=not sys.stdout.isatty()):
        preset = kav.presets.get(models[name])
        trainers[name] = trainer(preset, sizes, batch, mode)
        trainers[name]()
    return in_turns(trainers, runs, time.process_time)


def ratios(seconds: dict[str, list[float]], length: int, mode: Mode) -> list[TableRow]:
    """One row per model: the median of the ratios of rounds, and median seconds."""
    base = seconds[BASELINE]
    return [
        {
            "preset": name,
            "mode": mode.value,
            "milliseconds": 1e3 * statistics.median(own),
            "ratio": ratio(own, base),
            "bar": BARS.get(length) if is_recurrent(name) else None,
        }
        for name, own in seconds.items()
    ]


@app.command()
def main(
    presets: Annotated[
        list[str] | None,
        typer.Argument(help="Names of presets; all of kav/*/multi30k if none is given"),
    ] = None,
    width: Annotated[int, typer.Option(min=1, help="Width of the models.")] = 256,
    layers: Annotated[
        int, typer.Option(min=1, help="Layers of the encoder, and of the decoder.")
    ] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Sentences in a batch.")] = 64,
    length: Annotated[int, typer.Option(min=1, help="Tokens in a sentence.")] = 32,
    mode: Annotated[
        list[Mode], typer.Option(help="Precision and compiler; may be repeated.")
    ] = [Mode.FLOAT32_XLA, Mode.BFLOAT16],  # noqa: B006
    runs: Annotated[int, typer.Option(min=1, help="Timed updates of each model.")] = 15,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time of a training step, and its ratio to that of learned attention.

    Every model has the same width, depth, batch and precision; feed-forward layers are
    four times as wide as the model, the vocabulary has 8,000 tokens. Updates of the
    models take turns; the baseline takes two, which shows the noise.
    """
    names = presets or [
        name
        for name in kav.presets.names()
        if name.startswith("kav/") and name.endswith("/multi30k")
    ]
    sizes = {
        "vocabulary_size": VOCABULARY,
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
        "num_heads": 4,
    }
    models = {BASELINE: BASELINE, AGAIN: BASELINE}
    models |= {name: name for name in names if name != BASELINE}
    rows = []
    for each in mode:
        seconds = measured(each, models, sizes, full_batch(batch, length), runs)
        rows += ratios(seconds, length, each)
    setting = (
        f"{kav.backend.name()}, {layers} + {layers} layers of {width}, "
        f"{batch} x {length} tokens"
    )
    title = f"Time of a training step at length {length}"
    report = Report(title, TEXT, setting, rows, ("ratio",), at_most=True)
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
