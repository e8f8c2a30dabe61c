"""The speed and memory of exported models, compared with CTranslate2.

Every program decodes in its own process, on one thread. They take turns, and CPU time
counts, not elapsed time.
"""

import os
import resource
import subprocess
import sys
import tempfile
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

import keras
import numpy as np
import typer
from decoding import Output
from decoding import Work
from decoding import finish
from decoding_tables import CTRANSLATE2
from measuring import Report
from measuring import TableRow
from measuring import rounds
from peers import environments
from peers import model
from peers.process import Program
from serving_tables import SPEED_TEXT
from serving_tables import START_TEXT
from serving_tables import Exported
from serving_tables import Key
from serving_tables import speed_rows
from serving_tables import start_bars

import keras_attnvariants as kav
from keras_attnvariants.data.shortlist import Shortlist

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

LENGTH = 30
TITLE = "Exported models compared with CTranslate2"


class Size(StrEnum):
    """Widths of the models; layers and vocabulary grow with them."""

    SMALL = "256"
    BASE = "512"


# Vocabulary, layers, width, width of feed-forward layers, heads.
SIZES = {Size.SMALL: (8_000, 3, 256, 1024, 4), Size.BASE: (32_000, 6, 512, 2048, 8)}

WIDTHS = list(Size)
VARIANTS = ["base", "hc-sa"]
# One of each kind, besides the model with learned attention.
ALL_VARIANTS = [
    *["base", "hc-sa", "sh-x", "neural-ngram", "concatenated-ngram"],
    *["context", "accumulated-weights", "lstm", "homogeneous-query-k"],
]


class Form(StrEnum):
    """The precision of an exported model, and whether it has a shortlist."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    INT8_WEIGHTS = "int8-weights"
    SHORTLISTED = "bfloat16, shortlist"

    @property
    def precision(self) -> str:
        """The precision alone."""
        return self.value.split(", ")[0]

    def options(self, vocabulary: int) -> dict[str, Any]:
        """The options of `export` for this form."""
        options: dict[str, Any] = {"precision": self.precision}
        if self == Form.SHORTLISTED:
            width = vocabulary // SHORTLIST_SHARE
            options["shortlist"] = made_up_shortlist(vocabulary, width // 4)
            options["shortlist_width"] = width
        return options


def made_up_shortlist(vocabulary: int, common: int) -> Shortlist:
    """A number of common tokens, and 50 random proposals for each source token."""
    rng = np.random.default_rng(2)
    first = max(model.SPECIAL_IDS) + 1
    proposals = rng.integers(first, vocabulary, (vocabulary, 50), "int32")
    return Shortlist(np.arange(first, first + common, dtype="int32"), proposals)


# A shortlist has one token in 16.
SHORTLIST_SHARE = 16
FORMS = [Form.SHORTLISTED, Form.BFLOAT16, Form.INT8, Form.INT8_WEIGHTS]
BATCHES = [1, 8, 64]


def build(variant: str, weights: Path, sizes: dict[str, int]) -> keras.Model:
    """`base` with the common weights of all programs, or a preset's variant."""
    if variant == "base":
        made = model.read(weights, sizes)
    else:
        names = (f"kav/{variant}/{data}" for data in ("bible", "multi30k"))
        name = next(name for name in names if name in kav.presets.names())
        preset = kav.presets.get(name)
        options = {k: v for k, v in sizes.items() if k in preset.options}
        made = preset.build(**options, dropout=0.0)
        never_predict(model.SPECIAL_IDS, made)
    # Searches end with EOS at the last position, not before.
    made.search_settings = kav.models.SearchSettings(extra_length=0)
    return made


def never_predict(tokens: Sequence[int], made: keras.Model) -> None:
    """Gives tokens logits of 0, so that they are never among the best."""
    outputs = made.embeddings
    table = outputs.target.embeddings if outputs.tied else outputs.output_dense.kernel
    values = np.array(keras.ops.convert_to_numpy(table))
    (values if outputs.tied else values.T)[tokens] = 0
    table.assign(values)


def export(
    variant: str, form: Form, work: Work, weights: Path, max_tokens: int
) -> Path:
    """Exports a model, for token ids only, and returns its folder."""
    made = build(variant, weights, work.sizes)
    folder = weights.parent / f"{weights.stem}-{variant}-{form.name}"
    options = {"beam_size": work.beams, "max_tokens": max_tokens}
    options |= form.options(work.vocabulary)
    return kav.serving.export(made, None, folder, **options)


def start_programs(
    stack: ExitStack, work: Work, weights: Path, exports: Mapping[Key, Path], peer: str
) -> dict[Key, Program]:
    """Starts all programs, CTranslate2 first if there is an interpreter for it."""
    options = work.options | {"weights": str(weights)}
    programs = {}
    if peer:
        key, options["precision"] = (CTRANSLATE2, "int8"), "int8"
        programs[key] = stack.enter_context(Program(peer, "ct2", options))
    for key, path in exports.items():
        own = options | {"path": str(path)}
        programs[key] = stack.enter_context(Program(sys.executable, "saved", own))
    return programs


def decode(program: Program, sources: list[list[int]], steps: int) -> float:
    """The CPU seconds of one decoding.

    Raises:
        RuntimeError: a translation does not have the measured length.
    """
    ids = program.decode(sources, steps)
    lengths = {sum(token != 0 for token in row[0]) for row in ids}
    if lengths != {steps}:
        raise RuntimeError(f"{program.module} decoded {lengths} steps, not {steps}")
    return program.cpu_seconds


def measure(
    programs: Mapping[Key, Program], work: Work, batch: int
) -> dict[Key, list[float]]:
    """The CPU seconds of all programs, for every round with one batch."""
    sources = work.sources(batch)
    runs = {k: partial(decode, p, sources, work.steps) for k, p in programs.items()}
    for run in runs.values():
        run()
    return rounds(runs, work.runs)


def size_rows(
    work: Work,
    variants: Sequence[str],
    forms: Sequence[Form],
    batches: Sequence[int],
    max_tokens: int,
    peer: str,
) -> list[TableRow]:
    """The rows of models of one size."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        weights = Path(folder) / "weights.npz"
        model.write(weights, work.sizes)
        exports = {
            (variant, form.value): export(variant, form, work, weights, max_tokens)
            for variant in variants
            for form in forms
        }
        programs = start_programs(stack, work, weights, exports, peer)
        exported = {
            key: Exported(
                exports.get(key),
                load=program.cpu_seconds,
                first=decode(program, work.sources(1), work.steps),
                memory=program.memory,
            )
            for key, program in programs.items()
        }
        rows = []
        for batch in batches:
            found = measure(programs, work, batch)
            rows += speed_rows(work.width, batch, work.steps, found, exported)
    return rows


@app.command()
def speed(
    size: Annotated[list[Size], typer.Option(help="Widths of the models.")] = WIDTHS,
    variant: Annotated[
        list[str],
        typer.Option(help="base, or VARIANT of kav/VARIANT/bible or …/multi30k."),
    ] = VARIANTS,
    precision: Annotated[
        list[Form], typer.Option(help="Precisions of the exports.")
    ] = FORMS,
    batch: Annotated[
        list[int], typer.Option(min=1, help="Sentences in a request.")
    ] = BATCHES,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 7,
    beams: Annotated[int, typer.Option(min=2, help="Hypotheses of a sentence.")] = 4,
    max_tokens: Annotated[
        int, typer.Option(min=LENGTH, help="The longest source that exports read.")
    ] = 256,
    cores: Annotated[str, typer.Option(help="Cores to run on, such as 0,1.")] = "",
    peer: Annotated[bool, typer.Option(help="Whether to run CTranslate2.")] = True,
    peer_python: Annotated[
        Path | None,
        typer.Option(envvar="PEER_PYTHON", help="An interpreter with CTranslate2."),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the table.")] = TITLE,
    bars: Annotated[bool, typer.Option(help="Whether rows have bars.")] = True,
    output: Output = None,
) -> None:
    """Tokens per second of exported models and of CTranslate2.

    One row in about a minute: --size 256 --variant base --precision bfloat16
    --batch 1 --runs 3
    """
    python = ""
    if peer:
        python = str(peer_python or environments.interpreter("ctranslate2"))
    rows = []
    for width in size:
        work = Work(*SIZES[width], LENGTH, LENGTH, beams, runs, 1, cores)
        rows += size_rows(work, variant, precision, batch, max_tokens, python)
    if not bars:
        rows = [row | {"bar": None} for row in rows]
    setting = f"beam of {beams}, {LENGTH} tokens in and out, 1 thread"
    finish(Report(title, SPEED_TEXT, setting, rows, ("of CTranslate2",)), output)


@app.command()
def variants(
    batch: Annotated[
        list[int], typer.Option(min=1, help="Sentences in a request.")
    ] = BATCHES,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each.")] = 5,
    peer: Annotated[bool, typer.Option(help="Whether to run CTranslate2.")] = True,
    peer_python: Annotated[
        Path | None,
        typer.Option(envvar="PEER_PYTHON", help="An interpreter with CTranslate2."),
    ] = None,
    output: Output = None,
) -> None:
    """Tokens per second for one variant of each kind, in bfloat16 and width 256."""
    speed(
        size=[Size.SMALL],
        variant=ALL_VARIANTS,
        precision=[Form.BFLOAT16],
        batch=batch,
        runs=runs,
        beams=4,
        max_tokens=256,
        cores="",
        peer=peer,
        peer_python=peer_python,
        title="Exported variants compared with CTranslate2",
        bars=False,
        output=output,
    )


def seconds_of(*command: str) -> float:
    """The CPU seconds of a Python process, including its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603
        [sys.executable, *command], check=True, capture_output=True, cwd=REPOSITORY
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


REPOSITORY = Path(__file__).resolve().parents[1]
QUICKSTART = "kav/hc-sa/bible"
WORDS = "in the beginning was a word and it was with all of them".split()


def quickstart(folder: Path, form: Form) -> tuple[Path, Path]:
    """A model `kav/hc-sa/bible` with random weights: its folder, and its export."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, 9)) for _ in range(200)]
    tokenizer = kav.Tokenizer.train(texts, 30)
    made = kav.presets.get(QUICKSTART).build()
    unknown = range(tokenizer.vocabulary_size, made.vocabulary_size)
    never_predict([*model.SPECIAL_IDS, *unknown], made)
    kav.save_model(made, folder / "model", tokenizer)
    options = form.options(made.vocabulary_size)
    saved = kav.serving.export(made, tokenizer, folder / "saved", **options)
    return folder / "model", saved


@app.command()
def start(
    precision: Annotated[
        Form, typer.Option(help="Precision of the export.")
    ] = Form.BFLOAT16,
    output: Output = None,
) -> None:
    """Time and memory of an exported `kav/hc-sa/bible` to its first translation."""
    text = " ".join(WORDS[:9])
    kav_translate = ("-m", "keras_attnvariants", "translate", text)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        model_folder, path = quickstart(Path(name), precision)
        options = {"path": str(path), "text": text, "threads": 1, "cores": cores()}
        program = stack.enter_context(Program(sys.executable, "saved", options))
        load = program.cpu_seconds
        program.decode([[0]], 0)
        tensorflow = seconds_of("-c", "import tensorflow")
        measured = {
            "graph, MB": (path / "saved_model.pb").stat().st_size / 1e6,
            "load, CPU seconds": load,
            "first answer, CPU seconds": program.cpu_seconds,
            "memory, MB": program.memory / 1e6,
            "kav translate --saved-model, CPU seconds": seconds_of(
                *kav_translate, "--saved-model", str(path)
            ),
            "kav translate --model, CPU seconds": seconds_of(
                *kav_translate, "--model", str(model_folder)
            ),
        }
    bars = start_bars(tensorflow)
    rows = [
        {"measurement": name, "measured": value, "bar": bars[name]}
        for name, value in measured.items()
    ]
    setting = f"{QUICKSTART}, one sentence of 9 words, 1 thread"
    setting += f", import of TensorFlow: {tensorflow:.1f} CPU seconds"
    title = f"Start of an exported model in {precision.value}"
    report = Report(title, START_TEXT, setting, rows, ("measured",), at_most=True)
    finish(report, output)


def cores() -> list[int]:
    """The core that a program may use."""
    return sorted(os.sched_getaffinity(0))[:1]


if __name__ == "__main__":
    app()
