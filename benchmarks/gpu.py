"""The speed of training on an accelerator, compared with PyTorch.

    python benchmarks/gpu.py --minutes 8 --output gpu.json

It needs Python with Keras, JAX and this package; TensorFlow and SentencePiece are not
imported. If the same Python or that of --peer-python has PyTorch, its Transformer is
measured as well. Each result is printed and written to the file at once; programs for
which there is no time left are named.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
# PyTorch shares the memory of the device.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import keras
import numpy as np
import typer
from flops import update_flops
from measuring import Report
from measuring import TableRow
from training import torch_names

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

FOLDER = Path(__file__).resolve().parent
BASE = "base"
# The recurrences come first: the paper has figures for them.
FAMILIES = (
    *("context", "weights", "accumulated-weights", "accumulated-energies"),
    *("subtracted-weights", "expanded-shared", "expanded-full", "expanded-head"),
    *("expanded-head-key", "hc-sa", "hc-all", "sh-x", "interleaved-query-k"),
    *("homogeneous-query-k", "heterogeneous-conv-kv", "neural-ngram"),
    *("concatenated-ngram", "local-attention", "linear", "lstm"),
)


class Precision(StrEnum):
    """Precisions; the one that users of such a device train in comes first."""

    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"


EVERY_PRECISION = list(Precision)
POLICIES = {Precision.BFLOAT16: "mixed_bfloat16", Precision.FLOAT32: "float32"}
# Dense products per second stated by the maker, in units of 10^12, for float32 as JAX
# computes it (TensorFloat-32) and for bfloat16.
PEAKS = {
    "H100": {"float32": 494.7, "bfloat16": 989.4},
    "H200": {"float32": 494.7, "bfloat16": 989.4},
    "A100": {"float32": 156.0, "bfloat16": 312.0},
}
TEXT = (
    "Target tokens per second in training on batches without padding, read from a "
    "file: dropout, label smoothing, Adam, XLA. The share of the peak is that of the "
    "matrix products of an update, forward and backward, in what the maker states for "
    "the device; beside it, in what one large product reaches here. Times of variants "
    "are relative to those of base; the paper's are of its own code and device."
)


def product_rate(dtype: str, size: int) -> float:
    """Operations per second of a product of two large matrices, in units of 10^12."""
    a = jax.numpy.ones((size, size), dtype)
    product = jax.jit(lambda x, y: x @ y)
    product(a, a).block_until_ready()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        product(a, a).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e12


def stated_peak(dtype: str) -> float | None:
    """The rate that the device's maker states, in units of 10^12; `None` if unknown."""
    kind = jax.devices()[0].device_kind
    return next((peak[dtype] for name, peak in PEAKS.items() if name in kind), None)


def write_batches(path: Path, vocabulary: int, rows: int, length: int) -> None:
    """Writes a few batches of random tokens."""
    ids = np.random.default_rng(1).integers(4, vocabulary, (3, 4, rows, length))
    np.savez(path, source=ids[0], target=ids[1], labels=ids[2])


def batches(path: Path) -> Iterator[Any]:
    """The batches of a file, again and again."""
    arrays = np.load(path)
    sides = [arrays[name].astype("int32") for name in ("source", "target", "labels")]
    while True:
        for source, target, labels in zip(*sides, strict=True):
            yield {"source_ids": source, "target_ids": target}, labels


def published_time(family: str) -> float | None:
    """Training time of a recurrence in the paper, relative to its baseline."""
    name = f"rosendahl2021/{family}/wmt16-ro-en"
    if name not in kav.presets.names():
        return None
    return kav.presets.get(name).published.relative_training_time


class Seconds(keras.callbacks.Callback):
    """Measures each epoch of `fit`, whose logs wait for the device."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        float(logs["loss"])
        self.epochs.append(time.perf_counter() - self.start)


def built(family: str, sizes: dict[str, int], policy: str) -> keras.Model:
    """A model of a family, compiled as `kav.training.train` compiles it."""
    keras.utils.set_random_seed(1)
    preset = kav.presets.get(f"kav/{family}/multi30k")
    known = {name: size for name, size in sizes.items() if name in preset.options}
    model = preset.build(**known, dropout=0.1, dtype=policy)
    model.compile(
        kav.training.TrainingConfig(steps=1, learning_rate=1e-4).optimizer(),
        kav.training.LabelSmoothedCrossEntropy(0.1),
        jit_compile=True,
    )
    return model


def update_seconds(model: keras.Model, path: Path, updates: int, runs: int) -> float:
    """Seconds of an update, the fastest of several runs after one that compiles."""
    seconds = Seconds()
    model.fit(
        batches(path),
        steps_per_epoch=updates,
        epochs=1 + runs,
        callbacks=[seconds],
        verbose=0,
    )
    return min(seconds.epochs[1:]) / updates


def torch_seconds(
    python: str, task: dict[str, Any], updates: int, runs: int, limit: float
) -> float:
    """Seconds of an update of PyTorch's model, in a separate process.

    Raises:
        RuntimeError: it failed, or took longer than `limit` seconds.
    """
    requests = [{"task": task}, *[{"updates": updates}] * (1 + runs)]
    process = subprocess.Popen(  # noqa: S603
        [python, str(FOLDER / "peers" / "torch_training.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    text = "".join(f"{json.dumps(request)}\n" for request in requests)
    try:
        # It reports the times with its answers.
        answers, errors = process.communicate(text, timeout=limit)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise RuntimeError(f"no answer within {limit:.0f} s") from error
    lines = answers.splitlines()
    if len(lines) != len(requests):
        raise RuntimeError(errors.strip().splitlines()[-1] if errors else "no answer")
    return min(json.loads(line)["seconds"] for line in lines[2:]) / updates


class Measuring:
    """Measures programs in turn until the time is up, and writes the results.

    Args:
        rows, length: sentences of an update, and target tokens of each.
        deadline: time to stop at, by `time.monotonic`.
        setting: sizes in one line.
        output: file, or `None`.
        product_size: size of the matrices whose product shows the device's real speed.
    """

    def __init__(
        self,
        rows: int,
        length: int,
        deadline: float,
        setting: str,
        output: Path | None,
        product_size: int,
    ) -> None:
        self.tokens = rows * length
        self.length = length
        self.deadline = deadline
        self.setting = setting
        self.output = output
        self.rates = {dtype: product_rate(dtype, product_size) for dtype in POLICIES}
        self.peaks = {dtype: stated_peak(dtype) for dtype in POLICIES}
        self.rows: list[TableRow] = []
        self.base: dict[str, float] = {}
        self.left_out: list[str] = []

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def add(self, name: str, dtype: str, run: Callable[[], Any]) -> None:
        """Measures one program, if there is time.

        Args:
            name: name of the program.
            dtype: its precision.
            run: returns the seconds of an update, and its operations or `None`.
        """
        if self.left <= 0:
            self.left_out.append(f"{name}, {dtype}")
            return
        try:
            seconds, flops = run()
        except Exception as error:
            # Measures the others all the same.
            reason = str(error).strip().splitlines() or [type(error).__name__]
            self.left_out.append(f"{name}, {dtype} ({reason[-1]:.200})")
            return
        if name == BASE:
            self.base[dtype] = seconds
        base, rate = self.base.get(dtype), flops and flops / seconds / 1e12
        row: TableRow = {
            "program": name,
            "precision": dtype,
            "milliseconds": 1e3 * seconds,
            "tokens per second": self.tokens / seconds,
            "time / base": base and seconds / base,
            "the paper's": published_time(name),
            "share of peak": rate and self.peaks[dtype] and rate / self.peaks[dtype],
            "share of product": rate and rate / self.rates[dtype],
        }
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        self.write()

    def report(self) -> Report:
        """The report of the results so far."""
        text = TEXT
        if self.left_out:
            text += f" Not measured: {'; '.join(self.left_out)}."
        title = f"Training on an accelerator at length {self.length}"
        return Report(title, text, self.setting, self.rows)

    def write(self) -> None:
        """Writes the file."""
        if self.output is not None:
            self.report().write(self.output)


def torch_python(given: Path | None) -> str | None:
    """An interpreter with PyTorch, if there is one."""
    if given is not None:
        return str(given)
    return sys.executable if importlib.util.find_spec("torch") else None


def torch_task(
    model: keras.Model, batches: Path, sizes: dict[str, int], folder: Path
) -> dict[str, Any]:
    """The task of PyTorch's model: initial weights, batches and settings."""
    weights = {
        weight.path.partition("/")[2]: np.asarray(weight) for weight in model.weights
    }
    path = folder / "torch.npz"
    np.savez(path, **dict(np.load(batches)), **torch_names(weights))
    is_gpu = jax.default_backend() == "gpu"
    return {
        "data": str(path),
        "sizes": sizes,
        "dropout": 0.1,
        "smoothing": 0.1,
        "learning_rate": 1e-4,
        "threads": os.cpu_count(),
        "device": "cuda" if is_gpu else "cpu",
    }


@app.command()
def main(
    width: Annotated[int, typer.Option(min=4, help="Width of the models.")] = 512,
    layers: Annotated[int, typer.Option(min=1, help="Layers of each side.")] = 6,
    heads: Annotated[int, typer.Option(min=1, help="Heads of attention.")] = 8,
    vocabulary: Annotated[int, typer.Option(min=20, help="Vocabulary size.")] = 32_000,
    rows: Annotated[int, typer.Option(min=1, help="Sentences in a batch.")] = 256,
    length: Annotated[int, typer.Option(min=1, help="Tokens in a sentence.")] = 32,
    updates: Annotated[int, typer.Option(min=1, help="Updates of a run.")] = 20,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each program.")] = 3,
    minutes: Annotated[float, typer.Option(help="Time limit.")] = 8.0,
    family: Annotated[
        list[str] | None, typer.Option(help="Families besides base; default: all.")
    ] = None,
    precision: Annotated[
        list[Precision], typer.Option(help="Precisions to train in.")
    ] = EVERY_PRECISION,
    product_size: Annotated[int, typer.Option(min=8, help="Size of matrices.")] = 8192,
    peer_python: Annotated[
        Path | None,
        typer.Option(envvar="PEER_PYTHON", help="An interpreter that has PyTorch."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Tokens per second in training: base, PyTorch, and every family."""
    start = time.monotonic()
    sizes = {
        "vocabulary_size": vocabulary,
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
        "num_heads": heads,
    }
    device = jax.devices()[0].device_kind
    setting = (
        f"{device}, {layers} + {layers} layers of {width}, {heads} heads, vocabulary "
        f"of {vocabulary:,}, {rows} x {length} tokens"
    )
    measuring = Measuring(
        rows, length, start + 60 * minutes, setting, output, product_size
    )
    python = torch_python(peer_python)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "batches.npz"
        write_batches(path, vocabulary, rows, length)

        def ours(family: str, dtype: str) -> tuple[float, float | None]:
            model = built(family, sizes, POLICIES[dtype])
            flops = None
            if hasattr(model, "decoder_blocks"):
                flops = update_flops(model, rows, length, length)
            seconds = update_seconds(model, path, updates, runs)
            keras.utils.clear_session()
            return seconds, flops

        def theirs(dtype: str, compiled: bool) -> tuple[float, float | None]:
            model = built(BASE, sizes, "float32")
            task = torch_task(model, path, sizes, Path(name))
            task |= {"bfloat16": dtype == "bfloat16", "compile": compiled}
            limit = max(measuring.left, 1.0)
            seconds = torch_seconds(python, task, updates, runs, limit)
            return seconds, update_flops(model, rows, length, length)

        for dtype in precision:
            measuring.add(BASE, dtype, partial(ours, BASE, dtype))
        for dtype, compiled in itertools.product(precision, (True, False)):
            title = "PyTorch, compiled" if compiled else "PyTorch"
            if python is None:
                measuring.left_out.append(f"{title}, {dtype} (not installed)")
            else:
                measuring.add(title, dtype, partial(theirs, dtype, compiled))
        for dtype in precision:
            for one in family or FAMILIES:
                measuring.add(one, dtype, partial(ours, one, dtype))
    if not measuring.rows:
        typer.echo(f"No time for any program. Received: {minutes} minutes", err=True)
        raise typer.Exit(1)
    measuring.write()
    measuring.report().show()


if __name__ == "__main__":
    app()
