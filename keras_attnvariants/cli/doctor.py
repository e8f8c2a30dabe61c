"""`kav doctor`: what is there, what is damaged, what still works, what to do."""

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.utils.importing import import_tensorflow

if TYPE_CHECKING:
    from keras_attnvariants.cli.health import Diagnosis

Place = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN | MODEL | CORPUS]",
        help="Folder of a run, a model, a SavedModel or a corpus, a TSV file, or the "
        "name of a registered corpus; without any, the environment is examined.",
        show_default=False,
    ),
]
Precision = Annotated[
    bool,
    typer.Option(
        "--precision", help="Measure which precision is faster here (a second or two)."
    ),
]


@command
def doctor(place: Place = None, precision: Precision = False) -> None:
    """Examine a run, a model or a corpus, or what is installed; change nothing.

    Exit code 0: all is well; 1: something is damaged or missing; 2: a wrong call.

    [bold]Example:[/bold] kav doctor runs/multi30k
    """
    if place is not None and precision:
        raise ValueError("--precision is about the machine: give no folder with it.")
    if place is not None and not place:
        raise ValueError("The name of a folder must not be empty.")
    import_tensorflow()
    if place is None:
        from keras_attnvariants.cli.environment import examine_environment

        found = examine_environment(precision)
    else:
        found = examine(place)
    show(place or "environment", found)
    if not found.is_healthy:
        raise typer.Exit(1)


def examine(place: str) -> "Diagnosis":
    """What is found in a place of any kind.

    Raises:
        ValueError: there is nothing there that could be examined.
    """
    from keras_attnvariants.cli import corpus_health
    from keras_attnvariants.cli import health
    from keras_attnvariants.data import registry

    path = Path(place)
    for fits, examine_kind in (
        (health.is_run, health.examine_run),
        (health.is_saved_model, health.examine_saved_model),
        (health.is_model, health.examine_model),
        (corpus_health.is_corpus, corpus_health.examine_corpus),
        (Path.is_file, corpus_health.examine_table),
    ):
        if fits(path):
            return examine_kind(path)
    if place in registry.names():
        return corpus_health.examine_cached(place)
    raise ValueError(
        "Give the folder of a run, a model, a SavedModel or a corpus, a TSV file or "
        f"a name that `kav corpora` lists. Received: {place}"
    )


def show(name: str, found: "Diagnosis") -> None:
    """Prints what was found, a line each, what still works, and a verdict."""
    typer.echo(f"{name}: {found.kind}")
    width = max((len(finding.name) for finding in found.findings), default=0)
    for finding in found.findings:
        typer.echo(f"  {finding.state:8} {finding.name:{width}}  {finding.text}")
        if finding.advice:
            typer.echo(f"  {'':8} {'':{width}}  To do: {finding.advice}.")
    if found.usable:
        typer.echo("What works:")
        for line in found.usable:
            typer.echo(f"  {line}")
    damaged = sum(finding.state == "damaged" for finding in found.findings)
    typer.echo(f"Damaged: {damaged}." if damaged else "All is well.")
