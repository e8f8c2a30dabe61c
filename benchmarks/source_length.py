"""Time and memory of a training step by the length of the source, for five encoders."""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from typing import Any

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from peak import in_own_process
from peak import peak

import keras_attnvariants as kav
from keras_attnvariants.analysis.pictures import Panel
from keras_attnvariants.analysis.pictures import Point
from keras_attnvariants.analysis.pictures import draw_panels

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BASE = "base"
ENCODERS = (BASE, "hc-sa", "neural-ngram", "local-attention", "linear")
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
TARGET = 32  # positions

TEXT = (
    "A training step of `kav/base/scitldr` (float32, without XLA) by the length of the "
    "source, with other encoders too; the decoder is the same. Each batch has as many "
    "source positions as the longest source, and one target of {target} for every "
    "{longest} of them. Time is that of the processor, the median of {runs} "
    "rounds; memory is the peak of the step beyond model and optimizer."
)


def step(encoder: str, length: int, positions: int) -> Callable[[], Any]:
    """A training step of a model on a random batch.

    Args:
        encoder: one of `ENCODERS`.
        length: positions of each source.
        positions: positions of all sources together.
    """
    name = BASE if encoder == "linear" else encoder
    attention = {"encoder_attention": kav.LinearAttention(num_heads=4)}
    model = kav.presets.get(f"kav/{name}/scitldr").build(
        max_length=positions, **(attention if encoder == "linear" else {})
    )
    model.compile(keras.optimizers.Adam(1e-4), kav.training.LabelSmoothedCrossEntropy())
    rng, sentences = np.random.default_rng(1), positions // length
    # As many target positions at every length, so that the decoder's share is small.
    shape = (sentences, TARGET * length // positions)
    target, labels = rng.integers(4, model.vocabulary_size, (2, *shape), "int32")
    source = rng.integers(4, model.vocabulary_size, (sentences, length), "int32")
    inputs = {"source_ids": source, "target_ids": target}
    return lambda: model.train_on_batch(inputs, labels)


def times(
    encoders: list[str], lengths: list[int], runs: int
) -> dict[tuple[str, int], float]:
    """CPU milliseconds of a step, by encoder and length."""
    steps = {(e, n): step(e, n, max(lengths)) for e in encoders for n in lengths}
    for run in steps.values():
        run()
    measured = in_turns(steps, runs, time.process_time)
    return {key: 1e3 * statistics.median(found) for key, found in measured.items()}


def memory(encoder: str, length: int, positions: int) -> float:
    """Peak memory of a step in MiB."""
    return peak(step(encoder, length, positions)) / 2**20


def from_which_on(
    values: dict[tuple[str, int], float], encoder: str, lengths: list[int]
) -> int | None:
    """The length from which an encoder takes less than base, if there is one."""
    less = [values[encoder, length] < values[BASE, length] for length in lengths]
    places = [place for place in range(len(lengths)) if all(less[place:])]
    return lengths[places[0]] if places else None


def report_rows(
    milliseconds: dict[tuple[str, int], float],
    mebibytes: dict[tuple[str, int], float],
    encoders: list[str],
    lengths: list[int],
) -> list[TableRow]:
    """A row for the time of each encoder, and one for its memory."""
    rows = []
    for title, values in (("ms", milliseconds), ("MiB", mebibytes)):
        for encoder in encoders:
            row: TableRow = {"encoder": encoder, "of a step": title}
            row |= {f"{length:,}": values[encoder, length] for length in lengths}
            begin = from_which_on(values, encoder, lengths)
            row["less than base from"] = "" if begin is None else f"{begin:,}"
            rows.append(row)
    return rows


def picture(
    milliseconds: dict[tuple[str, int], float], mebibytes: dict[tuple[str, int], float]
) -> Any:
    """The curves of time and memory, as a figure of matplotlib."""
    panels = [
        Panel(
            title,
            "lines",
            [Point(length, values[e, length], e) for e, length in values],
            "positions of the source",
            unit,
        )
        for title, unit, values in (
            ("time of a training step", "milliseconds", milliseconds),
            ("peak memory of a training step", "MiB", mebibytes),
        )
    ]
    figure = draw_panels(panels)
    for axis in figure.axes:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.minorticks_off()
    return figure


@app.command()
def main(
    encoders: Annotated[list[str], typer.Option(help="Encoders.")] = ENCODERS,
    lengths: Annotated[
        list[int], typer.Option(min=1, help="Positions of a source.")
    ] = LENGTHS,
    runs: Annotated[int, typer.Option(min=1, help="Timed steps of each.")] = 5,
    drawing: Annotated[
        Path | None, typer.Option("--picture", help="File for the curves.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time and memory of a training step by the length of the source.

    The longest length must be a multiple of the others, and memory takes Linux.
    """
    milliseconds = times(encoders, lengths, runs)
    mebibytes = {
        (encoder, length): in_own_process(memory, encoder, length, max(lengths))
        for encoder in encoders
        for length in lengths
    }
    rows = report_rows(milliseconds, mebibytes, encoders, lengths)
    text = TEXT.format(target=TARGET, longest=max(lengths), runs=runs)
    setting = f"{kav.backend.name()}, float32, {max(lengths):,} positions"
    report = Report("Length of the source", text, setting, rows)
    report.show()
    if drawing is not None:
        picture(milliseconds, mebibytes).savefig(drawing, dpi=90, bbox_inches="tight")
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
