"""Memory of a training step by model and batch size, and the tokens that fit."""

import os
import statistics
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import NamedTuple

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import typer
from measuring import Report
from measuring import TableRow
from peak import in_own_process
from peak import peak
from rich.progress import track

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

MODELS = ("base", "hc-sa", "sh-x", "base-no-sa", "sh-x-no-sa")
PRESET = "you2020/{}/wmt16-en-ro"
BARS = {"hc-sa": 1.17, "sh-x": 1.26}
GIB = 2**30

TEXT = (
    "Tokens, source and target together, whose training step fits into the memory "
    "of the GPU of Table 3 of You et al. (2020): forward and backward pass and "
    "Adam, at the large size there. A line through the memory of several batches "
    "gives the bytes per token and those of the model itself. {method}"
)


class Method(StrEnum):
    """A way to measure the memory of a step."""

    RESIDENT = "resident"
    BUFFERS = "buffers"


METHODS = {
    Method.RESIDENT: (
        "Memory is that of weights and optimizer, and the most that a step adds to the "
        "resident memory of a process of its own (the median of several)."
    ),
    Method.BUFFERS: (
        "Memory is the sum of the buffers that XLA reserves for the step; nothing runs."
    ),
}


class Step(NamedTuple):
    """One training step.

    Attributes:
        model: name of a variant of the paper.
        sentences: pairs in the batch.
        length: tokens of each source and of each target.
        policy: dtype policy.
        jit: whether XLA compiles it.
        sizes: arguments of the model that differ from the paper's.
    """

    model: str
    sentences: int
    length: int
    policy: str
    jit: bool
    sizes: dict[str, int]

    @property
    def tokens(self) -> int:
        return 2 * self.sentences * self.length

    def build(self):
        """The model, its optimizer, its loss, and a batch without padding."""
        keras.config.set_dtype_policy(self.policy)
        model = kav.presets.get(PRESET.format(self.model)).build(**self.sizes)
        optimizer = keras.optimizers.Adam(1e-4)
        optimizer.build(model.trainable_variables)
        loss = kav.training.LabelSmoothedCrossEntropy(0.1)
        shape = (3, self.sentences, self.length)
        rng = np.random.default_rng(1)
        source, target, labels = rng.integers(4, model.vocabulary_size, shape, "int32")
        inputs = {"source_ids": source, "target_ids": target}
        return model, optimizer, loss, inputs, labels


def resident(step: Step) -> int:
    """Bytes of weights and optimizer, and of a step in addition."""
    model, optimizer, loss, *batch = step.build()
    model.compile(optimizer, loss, jit_compile=step.jit)
    variables = [*model.variables, *optimizer.variables]
    kept = sum(np.prod(v.shape) * np.dtype(v.dtype).itemsize for v in variables)
    return int(kept) + peak(lambda: model.train_on_batch(*batch))


def buffers(step: Step) -> int:
    """Bytes of all buffers of the compiled step, on JAX."""
    import jax

    model, optimizer, loss, inputs, labels = step.build()

    def mean_loss(trained, others, inputs, labels):
        logits, others = model.stateless_call(trained, others, inputs, training=True)
        return loss(labels, logits), others

    def update(trained, others, slots, inputs, labels):
        differentiate = jax.value_and_grad(mean_loss, has_aux=True)
        (value, others), gradients = differentiate(trained, others, inputs, labels)
        trained, slots = optimizer.stateless_apply(slots, gradients, trained)
        return value, trained, others, slots

    state = [
        [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            optimizer.variables,
        )
    ]
    compiled = jax.jit(update, donate_argnums=(0, 1, 2)).lower(*state, inputs, labels)
    sizes = compiled.compile().memory_analysis()
    new = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
    return sizes.argument_size_in_bytes + new + sizes.temp_size_in_bytes


MEASURES: dict[Method, Callable[[Step], int]] = {
    Method.RESIDENT: resident,
    Method.BUFFERS: buffers,
}


def line(points: dict[int, list[int]]) -> tuple[float, float, float]:
    """Bytes per token, bytes at 0 tokens, and the largest distance from the line.

    Args:
        points: bytes of every run by number of tokens.

    Returns:
        Slope and intercept of the line through the medians; the largest relative
        distance of a run from the line.
    """
    tokens = np.array(list(points))
    medians = [statistics.median(runs) for runs in points.values()]
    slope, intercept = np.polyfit(tokens, medians, 1)
    distances = [
        abs(run / (slope * count + intercept) - 1)
        for count, runs in points.items()
        for run in runs
    ]
    return float(slope), float(intercept), float(max(distances))


def report_rows(
    measured: dict[str, dict[int, list[int]]], budget: float
) -> list[TableRow]:
    """One row per model: its line, the tokens that fit, and what the paper reports."""
    fits, rows = {}, []
    for name, points in measured.items():
        slope, intercept, distance = line(points)
        fits[name] = (budget - intercept) / slope
        published = kav.presets.get(PRESET.format(name)).published.max_batch_tokens
        base = kav.presets.get(PRESET.format("base")).published.max_batch_tokens
        rows.append(
            {
                "model": name,
                "KiB per token": slope / 1024,
                "model, MiB": intercept / 2**20,
                "off the line, %": 100 * distance,
                "tokens": fits[name],
                "ratio": fits[name] / fits["base"],
                "bar": BARS.get(name),
                "tokens, paper": published,
                "ratio, paper": published / base,
            }
        )
    return rows


@app.command()
def main(
    method: Annotated[
        Method, typer.Option(help="Measured memory, or (on JAX) XLA's plan.")
    ] = Method.RESIDENT,
    batches: Annotated[
        list[int], typer.Option(min=1, help="Sentences of a batch; at least two sizes.")
    ] = (32, 64, 96),
    length: Annotated[int, typer.Option(min=1, help="Tokens of a sentence.")] = 32,
    budget_gib: Annotated[float, typer.Option(help="Memory to fill, in GiB.")] = 11.0,
    layers: Annotated[
        int, typer.Option(min=1, help="Layers of the encoder, and of the decoder.")
    ] = 6,
    width: Annotated[int, typer.Option(min=1, help="Width of the models.")] = 512,
    vocabulary: Annotated[
        int, typer.Option(min=5, help="Tokens of the vocabulary.")
    ] = 32_000,
    policy: Annotated[str, typer.Option(help="Dtype policy.")] = "float32",
    jit: Annotated[bool, typer.Option(help="Whether XLA compiles the step.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Processes for each batch.")] = 1,
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Tokens of a training step that fit into a fixed memory, by model.

    The default budget is that of the paper's GPU, an RTX 2080 Ti. Feed-forward layers
    are four times as wide as the model. Measuring needs Linux.
    """
    if len(set(batches)) < 2:
        typer.echo(
            "Error: --batches must be given twice at least, with different sizes.",
            err=True,
        )
        raise typer.Exit(2)
    sizes = {
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": 4 * width,
        "vocabulary_size": vocabulary,
    }
    measured: dict[str, dict[int, list[int]]] = {name: {} for name in MODELS}
    if method is Method.BUFFERS:
        runs = 1
    todo = [(count, name) for _ in range(runs) for count in batches for name in MODELS]
    for count, name in track(todo, "Measuring", disable=not sys.stdout.isatty()):
        step = Step(name, count, length, policy, jit, sizes)
        found = in_own_process(MEASURES[method], step)
        measured[name].setdefault(step.tokens, []).append(found)
    rows = report_rows(measured, budget_gib * GIB)
    setting = (
        f"{kav.backend.name()}, {policy}, XLA {'on' if jit else 'off'}, {layers} + "
        f"{layers} layers of {width}, vocabulary {vocabulary:,}, sentences of {length} "
        f"tokens, {budget_gib:g} GiB"
    )
    text = TEXT.format(method=METHODS[method])
    report = Report("Memory of a training step", text, setting, rows, ("ratio",))
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
