"""`kav doctor`: examines a place or the environment, and says what to do."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import NamedTuple

import typer
from packaging.requirements import Requirement
from packaging.version import Version

import keras_attnvariants
from keras_attnvariants.cli.commands import argument
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import TaskName
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.caches import default_cache
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import install_command
from keras_attnvariants.utils.machine import installed

OK, NOTE, DAMAGED = "ok", "note", "damaged"
# Built for one release of TensorFlow; not available for Windows.
TEXT = "tensorflow-text"
# Extras of this package, and their purposes.
EXTRAS = {
    "plot": "kav attention and kav analyse",
    "scores": "ROUGE, word error rates and the metric bleu-moses",
    "speech": "recordings in any format",
    "tensorboard": "the logs that TensorBoard shows",
    "tune": "kav tune",
    "compare": "kav compare",
    "hub": "models at hf:// and kaggle://",
    "datasets": "kav train --data hf:NAME",
    "import": "kav import",
    "onnx": "kav export --format onnx",
    "ctranslate2": "kav export --format ctranslate2",
    "demo": "kav demo",
    "jax": "KERAS_BACKEND=jax, and several devices",
    "mlserver": "serving with MLServer",
}


class Finding(NamedTuple):
    """A statement about one file, folder or package.

    Attributes:
        state: `"ok"`, `"note"` or `"damaged"`.
        name: name of the file or folder.
        text: its state in words.
        advice: what to do if it is damaged.
    """

    state: str
    name: str
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """Findings in one place.

    Attributes:
        kind: the kind of place, such as `"a run"`.
        findings: findings about its files and folders.
        usable: what still works, as commands or sentences.
    """

    kind: str
    findings: list[Finding]
    usable: list[str]

    @property
    def damaged(self) -> list[str]:
        """The names of what is damaged."""
        return [found.name for found in self.findings if found.state == DAMAGED]


@command
def doctor(
    place: str | None = argument(
        "Folder of a run, a model or a SavedModel, or a corpus as for `kav train`; "
        "without any, the environment is examined.",
        None,
        metavar="RUN | MODEL | CORPUS",
    ),
    source: str | None = option("Language that a corpus is translated from."),
    target: str | None = option("Language that a corpus is translated into."),
    task: TaskName | None = option(
        "Task that a corpus is for (translation). Summaries and speech need no "
        "languages."
    ),
    precision: bool = option(
        "Measure which precision is faster here (a second or two).", False
    ),
    imports: list[str] | None = IMPORTS,
) -> None:
    """Examine a run, a model or a corpus, or what is installed.

    Nothing is changed, but a corpus is read into the cache, as for training.

    Exit code 0: all is well; 1: something is damaged or missing; 2: a wrong call.

    [bold]Example:[/bold] kav doctor runs/multi30k
    """
    if place is not None and precision:
        raise ValueError("--precision is about the machine: give no folder with it.")
    if place is None and (source or target or task):
        raise ValueError(
            "--source, --target and --task are those of a corpus: name the corpus."
        )
    if task is None and (source is None) != (target is None):
        raise ValueError("A corpus has two languages: give --source and --target.")
    from keras_attnvariants.data import tasks

    corpus_task = tasks.get(task or tasks.DEFAULT)
    is_corpus = task or source or target
    languages = corpus_task.sides(source, target) if is_corpus else None
    import_modules(imports)
    from keras_attnvariants.cli.health import examine

    if place is None:
        found = examine_environment(precision)
    else:
        found = examine(place, languages, corpus_task.name)
    show(place or "environment", found)
    if found.damaged:
        raise typer.Exit(1)


def show(name: str, found: Diagnosis) -> None:
    """Prints a line per finding, what still works, and a verdict."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    typer.echo(f"{name}: {found.kind}")
    table = Table.grid(padding=(0, 2))
    for is_text in (False, False, True):
        table.add_column(no_wrap=not is_text, overflow="fold")
    for finding in found.findings:
        advice = f"\nTo do: {finding.advice}." if finding.advice else ""
        # `Text`: rich would interpret square brackets as markup.
        cells = f"  {finding.state}", finding.name, finding.text + advice
        table.add_row(*map(Text, cells))
    Console(highlight=False).print(table)
    if found.usable:
        typer.echo("What works:")
        for line in found.usable:
            typer.echo(f"  {line}")
    count = len(found.damaged)
    typer.echo(f"Damaged: {count}." if count else "All is well.")


def examine_environment(measure_precision: bool) -> Diagnosis:
    """Finds out what is installed and what the machine has.

    Args:
        measure_precision: whether to measure which precision is faster.
    """
    findings = [
        Finding(OK, "keras_attnvariants", keras_attnvariants.__version__),
        Finding(OK, "python", f"{platform.python_version()} on {platform.platform()}"),
        *_packages(),
        *_extras(),
        *_machine(),
        Finding(OK, "cache", f"{default_cache()} (environment: KAV_CACHE)"),
    ]
    if measure_precision:
        from keras_attnvariants.backend import bfloat16_cost
        from keras_attnvariants.training.training_config import faster_precision

        share = f"bfloat16 takes {bfloat16_cost():.2f} times as long"
        text = f"{faster_precision()} is faster here: {share}"
        findings.append(Finding(OK, "precision", text))
    return Diagnosis("what is installed, and the machine", findings, [])


def _packages() -> Iterator[Finding]:
    for needed in requirements():
        name, version = needed.name, installed(needed.name)
        if name == TEXT and (tensorflow := installed("tensorflow")):
            release = Version(tensorflow)
            needed = Requirement(f"{TEXT}=={release.major}.{release.minor}.*")
        limits = [limit for limit in needed.specifier if limit.operator == "<"]
        advice = f"pip install '{name}{needed.specifier}'"
        if version is None and name == TEXT:
            text = "not installed; for texts in tf.data and in exported models"
            yield Finding(NOTE, name, text, advice)
        elif version is not None and version in needed.specifier:
            tested = f" (tested: {needed.specifier})" if limits else ""
            yield Finding(OK, name, version + tested)
        elif version is not None and any(version not in limit for limit in limits):
            text = f"{version} is newer than what was tested: {needed.specifier}"
            yield Finding(NOTE, name, text, f"if it fails, {advice}")
        else:
            text = f"{version or 'not installed'}, and {needed} is needed"
            yield Finding(DAMAGED, name, text, advice)


def _extras() -> Iterator[Finding]:
    for extra, purpose in EXTRAS.items():
        found = {needed.name: installed(needed.name) for needed in requirements(extra)}
        if missing := [name for name, version in found.items() if version is None]:
            text = f"not installed: {', '.join(missing)}; for {purpose}"
            yield Finding(NOTE, extra, text, install_command(extra))
        else:
            listed = ", ".join(f"{name} {version}" for name, version in found.items())
            yield Finding(OK, extra, f"{listed}; for {purpose}")


def requirements(extra: str = "") -> list[Requirement]:
    """The packages that this package always needs, or needs for one extra."""

    def is_for(found: Requirement, extra: str) -> bool:
        return found.marker is None or found.marker.evaluate({"extra": extra})

    every = map(Requirement, metadata.requires("keras_attnvariants") or ())
    return [x for x in every if is_for(x, extra) and not (extra and is_for(x, ""))]


def _machine() -> Iterator[Finding]:
    from keras_attnvariants import backend

    for name, text in hardware().items():
        yield Finding(OK, name, text)
    if backend.is_onednn_exact():
        text = "multiplied by oneDNN, in Python and in exports in int8"
        yield Finding(OK, "int8", text)
    else:
        text = "multiplied as floats; exports in int8 refuse to translate"
        yield Finding(NOTE, "int8", text)
    if backend.sums_bfloat16_in_float32():
        yield Finding(OK, "bfloat16", "sums of products are rounded once")
    else:
        text = "partial sums of products are rounded too; float32 is more exact"
        yield Finding(NOTE, "bfloat16", text)
    yield Finding(OK, "backend", f"{backend.name()} (KERAS_BACKEND)")
