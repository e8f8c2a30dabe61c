"""The options of `kav tune`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.checks import checked
from keras_attnvariants.utils.checks import check_positive


class Method(StrEnum):
    """How points of a space are chosen."""

    RANDOM = "random"
    BAYESIAN = "bayesian"
    HYPERBAND = "hyperband"


class Objective(StrEnum):
    """What the best trial has the best of, on the validation split."""

    LOSS = "loss"
    BLEU = "bleu"


def budget_option(help: str, **options: Any) -> Any:
    """An option of which exactly one is given."""
    panel = "Budget of every trial (one of these)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


def worker_option(help: str, **options: Any) -> Any:
    """An option about trials in parallel."""
    return typer.Option(help=help, rich_help_panel="Parallel trials", **options)


Search = Annotated[
    Path,
    typer.Option(
        "--search",
        help="Folder of the search. If it holds the same search already, that is "
        "continued.",
        show_default=False,
    ),
]
Space = Annotated[
    str | None,
    typer.Option(
        help="What varies: a TOML file, or a name (you2020/offsets, "
        "you2020/all-offsets, loem2022/layer-hybrids, attention, attention-per-layer, "
        "training).",
        show_default=False,
    ),
]
FromLocality = Annotated[
    Path | None,
    typer.Option(
        help="In the place of a space, the folder of a trained baseline: layers whose "
        "heads look near get cheaper attention. Ends with whether that is as good.",
        show_default=False,
    ),
]
Distance = Annotated[int, typer.Option(help="What counts as near, in tokens.", min=1)]
Nearness = Annotated[
    float,
    typer.Option(
        help="How near a layer must look to get it: from 0, even weights, to 1, "
        "nothing beyond the distance.",
        min=0,
        max=1,
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        help="What is trained where the space says nothing else; default: "
        "kav/hc-sa/multi30k. Not with a baseline, which has its own.",
        show_default=False,
    ),
]
Updates = Annotated[int | None, budget_option("Updates.", min=1)]
Minutes = Annotated[
    float | None,
    budget_option(
        "Minutes for updates and validations.", callback=checked(check_positive)
    ),
]
Tokens = Annotated[
    int | None,
    budget_option("Source and target positions of all updates together.", min=1),
]
Validations = Annotated[
    int,
    typer.Option(help="Validations of a trial; in Hyperband, its epochs.", min=1),
]
Trials = Annotated[
    int | None,
    typer.Option(
        help="Number of trials; by default all points of a space of up to 20, else 20. "
        "Hyperband decides it by itself.",
        min=1,
        show_default=False,
    ),
]
Seeds = Annotated[
    int, typer.Option(help="Runs of each trial; its score is their mean.", min=1)
]
Seed = Annotated[
    int, typer.Option(help="Of the points that are tried.", min=1, max=2**31)
]
BleuSentences = Annotated[
    int, typer.Option(help="Validation sentences to translate, for bleu.", min=1)
]
Csv = Annotated[
    Path | None,
    typer.Option(help="File for the table of all trials.", show_default=False),
]
Workers = Annotated[
    int,
    worker_option("Processes on this machine, which share its cores.", min=0),
]
Chief = Annotated[
    str | None,
    worker_option(
        "host:port at which trials are handed out to other machines that have the "
        "folder of the search. Anyone who can reach it can take part.",
        show_default=False,
    ),
]
Worker = Annotated[
    str | None,
    worker_option(
        "Name of this worker: run trials of the chief at that address.",
        show_default=False,
    ),
]
