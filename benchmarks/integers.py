"""The gain from 8-bit integers on this processor, and the cost of their check.

`TF_ENABLE_ONEDNN_OPTS=0 ONEDNN_MAX_CPU_ISA=AVX2` imitates processors without VNNI.
"""

import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
import typer
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from measuring import ratio
from rich.console import Console

import keras_attnvariants as kav
from keras_attnvariants.backend import faster_floats

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

PRESET = "kav/base/multi30k"
SIZES = {
    "vocabulary_size": 8_000,
    "num_layers": 3,
    "hidden_dim": 256,
    "intermediate_dim": 1_024,
    "num_heads": 4,
}
BATCHES = [1, 64]
SOURCE_LENGTH = 30

TEXT = (
    "Beam search (4 hypotheses) in Python, as `kav translate --precision` runs it: "
    "tokens per second of processor time, on one thread, and the ratio to float32. The "
    "last row is an exported model that multiplies integers, asked for one sentence of "
    "six tokens: the ratio is that of its time to the time without the check of the "
    "processor."
)


def model_in(precision: str) -> keras.Model:
    """A model with random weights in a precision of `kav translate`."""
    policy = "mixed_bfloat16" if precision == "bfloat16" else "float32"
    keras.utils.set_random_seed(1)
    model = kav.presets.get(PRESET).build(**SIZES, dtype=policy)
    if precision == "int8":
        with warnings.catch_warnings():
            # Keras names the layers that it cannot quantize.
            warnings.simplefilter("ignore")
            model.quantize("int8")
    return model


def source(batch: int, length: int) -> np.ndarray:
    """Random sentences without padding."""
    rng = np.random.default_rng(1)
    return rng.integers(4, SIZES["vocabulary_size"], (batch, length), "int32")


def search(model: keras.Model, batch: int, steps: int) -> Callable:
    """A compiled beam search of the given number of steps."""
    run = kav.backend.jit(
        lambda ids: (
            kav.beam_search(
                model, ids, beam_size=4, min_length=steps - 1, max_length=steps
            ).ids
        ),
        xla=False,
    )
    return partial(run, source(batch, SOURCE_LENGTH))


def speed_rows(steps: int, runs: int) -> list[TableRow]:
    """Tokens per second in every precision, at every batch size."""
    models = {name: model_in(name) for name in ("float32", "bfloat16", "int8")}
    rows = []
    for batch in BATCHES:
        programs = {name: search(made, batch, steps) for name, made in models.items()}
        for run in programs.values():
            run()
        seconds = in_turns(programs, runs, time.process_time)
        rows += [
            {
                "program": f"{name}, batch {batch}",
                "tokens per second": batch * steps / statistics.median(own),
                "ratio": ratio(seconds["float32"], own),
            }
            for name, own in seconds.items()
        ]
    return rows


def request(path: Path) -> Callable:
    """A request of one short sentence to an exported model."""
    served = tf.saved_model.load(str(path)).signatures["translate_ids"]
    inputs = {"source_ids": source(1, 6), "lengths": [6]}
    return lambda: served(**{name: tf.constant(x) for name, x in inputs.items()})


def check_row(runs: int) -> TableRow:
    """The cost of the check in an exported model that multiplies integers."""
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / name for name in ("checked", "unchecked")}
        export = partial(kav.serving.export, model_in("float32"), None)
        export(places["checked"], precision="int8")
        with patch("keras_attnvariants.serving.signatures.check_integers", tf.no_op):
            export(places["unchecked"], precision="int8")
        programs = {name: request(path / "1") for name, path in places.items()}
    for run in programs.values():
        run()
    seconds = in_turns(programs, runs, time.process_time)
    return {
        "program": "export in int8, request of one sentence",
        "tokens per second": None,
        "ratio": ratio(seconds["checked"], seconds["unchecked"]),
    }


def use_one_thread() -> None:
    """Restricts TensorFlow to one thread; must be called before it computes."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


@app.command()
def main(
    steps: Annotated[int, typer.Option(min=2, help="Tokens of a translation.")] = 30,
    runs: Annotated[int, typer.Option(min=1, help="Searches in each precision.")] = 9,
    requests: Annotated[
        int, typer.Option(min=1, help="Requests with the check and without.")
    ] = 300,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Speed of integers and floats in Python, and the cost of the check of exports.

    The form that is exact on this processor is measured, and named in the table. The
    check is measured only where exports can multiply integers.
    """
    use_one_thread()
    exact = kav.backend.is_onednn_exact()
    rows = speed_rows(steps, runs)
    if exact:
        rows.append(check_row(requests))
    form = "integers by oneDNN" if exact else "integers as floats"
    report = Report("8-bit integers", TEXT, f"{form}, {steps} steps", rows)
    report.show()
    Console(file=sys.stderr).print(
        "`kav train --precision auto` takes " + faster_floats()
    )
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
