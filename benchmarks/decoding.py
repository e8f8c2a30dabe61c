"""The speed of beam search, compared with other programs and between variants.

Every program decodes in its own process, with the same number of threads on the same
cores. They take turns, so that only one runs at a time.
"""

import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated
from typing import Any

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Programs share the memory of a GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np
import typer
from arithmetic import decoding_step
from decoding_tables import BARS
from decoding_tables import CTRANSLATE2
from decoding_tables import HUGGING_FACE
from decoding_tables import OURS
from decoding_tables import PEERS_TEXT
from decoding_tables import VARIANTS_TEXT
from decoding_tables import Key
from decoding_tables import Measured
from decoding_tables import VariantTimes
from decoding_tables import column
from decoding_tables import peer_rows
from decoding_tables import variant_rows
from measuring import Report
from measuring import TableRow
from measuring import in_turns
from peers import environments
from peers import model
from peers.process import Program

import keras_attnvariants as kav

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# The module in peers/ and the environment of every other program.
PEERS = {CTRANSLATE2: ("ct2", "ctranslate2"), HUGGING_FACE: ("marian", "torch")}
# Their precisions by device.
PRECISIONS_OF_PEERS = {
    "cpu": {
        CTRANSLATE2: ("float32", "int8"),
        HUGGING_FACE: ("float32", "bfloat16"),
    },
    "cuda": {
        CTRANSLATE2: ("bfloat16", "int8_bfloat16"),
        HUGGING_FACE: ("bfloat16",),
    },
}


class DecodingPrecision(StrEnum):
    """Precisions of this package."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


class Peer(StrEnum):
    """Names of the other programs."""

    CTRANSLATE2 = CTRANSLATE2
    HUGGING_FACE = HUGGING_FACE


class Device(StrEnum):
    """The devices that programs compute on; ours, on a GPU, by JAX."""

    CPU = "cpu"
    CUDA = "cuda"


PRECISIONS = list(DecodingPrecision)
BATCHES = [1, 16, 64]
PRESETS = [f"you2020/{name}/wmt16-en-ro" for name in ("base", "hc-sa", "sh-x")]


@dataclasses.dataclass(frozen=True)
class Work:
    """The task of all programs, and their resources.

    Attributes:
        vocabulary, layers, width, feed_forward, heads: sizes of the model.
        length: tokens of every source sentence.
        steps: decoding steps, and so tokens of every translation.
        beams: hypotheses of a sentence.
        runs: number of timed runs.
        threads: threads of each program.
        cores: numbers of the cores that they may use, separated by commas; by default
            the first ones.
        device: where they compute.
    """

    vocabulary: int
    layers: int
    width: int
    feed_forward: int
    heads: int
    length: int
    steps: int
    beams: int
    runs: int
    threads: int
    cores: str
    device: str = "cpu"

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the model, by the names of this package."""
        return {
            "vocabulary_size": self.vocabulary,
            "num_layers": self.layers,
            "hidden_dim": self.width,
            "intermediate_dim": self.feed_forward,
            "num_heads": self.heads,
        }

    @property
    def options(self) -> dict[str, Any]:
        """Options of every program."""
        cores = [int(core) for core in self.cores.split(",") if core]
        if not cores and hasattr(os, "sched_getaffinity"):
            cores = sorted(os.sched_getaffinity(0))[: self.threads]
        common = {"beams": self.beams, "threads": self.threads, "cores": cores}
        return common | {"sizes": self.sizes, "device": self.device}

    def sources(self, batch: int) -> list[list[int]]:
        """Sentences of random words, without padding."""
        rng = np.random.default_rng(1)
        return rng.integers(4, self.vocabulary, (batch, self.length)).tolist()

    def __str__(self) -> str:
        return (
            f"{kav.backend.name()}, {self.layers} + {self.layers} layers of "
            f"{self.width}, vocabulary of {self.vocabulary:,}, beam of {self.beams}, "
            f"{self.length} source tokens, {self.steps} steps, threads: {self.threads}"
        )


def gpu() -> str:
    """The name of the GPU."""
    import jax

    return jax.devices("gpu")[0].device_kind


def start_programs(
    stack: ExitStack, work: Work, weights: Path, precisions, peers, peer_python
) -> dict[Key, Program]:
    """Starts ours and some peers, in all their precisions; ours come first."""
    programs = {(OURS, each): ("ours", sys.executable) for each in precisions}
    for name in peers:
        module, environment = PEERS[name]
        python = peer_python or environments.interpreter(environment)
        supported = PRECISIONS_OF_PEERS[work.device][name]
        programs |= {(name, each): (module, python) for each in supported}
    started = {}
    for key, (module, python) in programs.items():
        options = work.options | {"weights": str(weights), "precision": key[1]}
        started[key] = stack.enter_context(Program(python, module, options))
    return started


def measure(
    programs: Mapping[Key, Program], work: Work, batch: int
) -> dict[Key, Measured]:
    """Outputs and times of all programs for one batch.

    The last token of ours is EOS, so it is left out when comparing hypotheses.
    """
    sources, measured = work.sources(batch), {}
    for key, program in programs.items():
        start = time.perf_counter()
        ids = program.decode(sources, work.steps)
        first = time.perf_counter() - start
        if key[0] != OURS:
            ids = program.decode(sources, work.steps - 1)
        measured[key] = Measured(program.load_seconds, first, ids)
    runs = {
        key: partial(program.decode, sources, work.steps)
        for key, program in programs.items()
    }
    for key, seconds in in_turns(runs, work.runs).items():
        measured[key].seconds = seconds
    return measured


def measure_variants(
    presets: Sequence[str], work: Work, batch: int, precision: str
) -> dict[str, VariantTimes]:
    """Times and arithmetic of presets, by the names of their variants."""
    sources = work.sources(batch)
    with ExitStack() as stack:
        runs = {}
        for name in presets:
            options = work.options | {"preset": name, "precision": precision}
            program = Program(sys.executable, "ours", options)
            stack.enter_context(program)
            for steps in (work.steps, 0):
                runs[name, steps] = partial(program.decode, sources, steps)
                runs[name, steps]()
        seconds = in_turns(runs, work.runs)
    measured = {}
    for name in presets:
        preset = kav.presets.get(name)
        config = preset.architecture(**(preset.options | work.sizes))
        measured[name.split("/")[1]] = VariantTimes(
            seconds[name, work.steps],
            seconds[name, 0],
            decoding_step(config, work.length, work.steps),
            preset.published.sentences_per_second,
        )
    return measured


def finish(report: Report, output: Path | None) -> None:
    """Shows a report, and writes it if a file is given."""
    report.show()
    if output is not None:
        report.write(output)


Vocabulary = Annotated[int, typer.Option(min=20, help="Tokens of the vocabulary.")]
Layers = Annotated[
    int, typer.Option(min=1, help="Layers of the encoder, and of the decoder.")
]
Width = Annotated[int, typer.Option(min=4, help="Width of the model.")]
FeedForward = Annotated[int, typer.Option(min=1, help="Width of feed-forward layers.")]
Heads = Annotated[int, typer.Option(min=1, help="Heads of learned attention.")]
Length = Annotated[int, typer.Option(min=1, help="Source tokens of a sentence.")]
Steps = Annotated[int, typer.Option(min=2, help="Steps, and so target tokens.")]
Beams = Annotated[int, typer.Option(min=2, help="Hypotheses of a sentence.")]
Runs = Annotated[int, typer.Option(min=1, help="Timed runs of each program.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of every program.")]
Cores = Annotated[
    str, typer.Option(help="Cores to run on, such as 0,1; default: the first ones.")
]
Output = Annotated[Path | None, typer.Option(help="File for the numbers, as JSON.")]


@app.command()
def peers(
    precision: Annotated[
        list[DecodingPrecision],
        typer.Option(
            help="Our precisions; outputs are compared with those of the first."
        ),
    ] = PRECISIONS,
    batch: Annotated[
        list[int], typer.Option(min=1, help="Sentences in a batch.")
    ] = BATCHES,
    vocabulary: Vocabulary = 32_000,
    layers: Layers = 6,
    width: Width = 512,
    feed_forward: FeedForward = 2048,
    heads: Heads = 8,
    length: Length = 30,
    steps: Steps = 30,
    beams: Beams = 5,
    runs: Runs = 5,
    threads: Threads = 1,
    cores: Cores = "",
    device: Annotated[
        Device, typer.Option(help="Device; cuda needs KERAS_BACKEND=jax.")
    ] = Device.CPU,
    peer: Annotated[
        list[Peer] | None, typer.Option(help="Other programs; default: all.")
    ] = None,
    peer_python: Annotated[
        Path | None,
        typer.Option(
            envvar="PEER_PYTHON",
            help="An interpreter that has the packages of all other programs; if none "
            "is given, each gets an environment of its own.",
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Ours, CTranslate2 and Hugging Face's MarianMT, with the same weights."""
    sizes = vocabulary, layers, width, feed_forward, heads
    work = Work(*sizes, length, steps, beams, runs, threads, cores, device)
    rows: list[TableRow] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        weights = Path(folder) / "weights.npz"
        model.write(weights, work.sizes)
        programs = start_programs(
            stack, work, weights, precision, peer or PEERS, peer_python
        )
        bars = BARS if device is Device.CPU else {}
        for size in batch:
            rows += peer_rows(measure(programs, work, size), size, steps, bars)
    versions = {k: v for each in programs.values() for k, v in each.versions.items()}
    releases = ", ".join(f"{name} {version}" for name, version in versions.items())
    title, setting = "Beam search compared with other programs", f"{work}; {releases}"
    if device is Device.CUDA:
        title, setting = f"{title}, on a GPU", f"{gpu()}, {setting}"
    judged = tuple(column(each) for each in precision)
    finish(Report(title, PEERS_TEXT, setting, rows, judged), output)


@app.command()
def variants(
    presets: Annotated[
        list[str], typer.Argument(help="Names of presets, the baseline first.")
    ] = PRESETS,
    precision: Annotated[
        DecodingPrecision, typer.Option(help="Precision of all models.")
    ] = DecodingPrecision.BFLOAT16,
    batch: Annotated[int, typer.Option(min=1, help="Sentences in a batch.")] = 64,
    vocabulary: Vocabulary = 32_000,
    layers: Layers = 6,
    width: Width = 512,
    feed_forward: FeedForward = 2048,
    heads: Heads = 8,
    length: Length = 30,
    steps: Steps = 30,
    beams: Beams = 5,
    runs: Runs = 5,
    threads: Threads = 1,
    cores: Cores = "",
    output: Output = None,
) -> None:
    """Models with hard-coded attention, compared with learned attention."""
    sizes = vocabulary, layers, width, feed_forward, heads
    work = Work(*sizes, length, steps, beams, runs, threads, cores)
    measured = measure_variants(presets, work, batch, precision)
    rows = variant_rows(measured, batch * steps)
    setting = f"{work}, {precision}, batch of {batch}"
    title = f"Beam search of variants in {precision}"
    finish(Report(title, VARIANTS_TEXT, setting, rows, ("ratio",)), output)


if __name__ == "__main__":
    app()
