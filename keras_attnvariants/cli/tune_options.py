"""The options of `kav tune`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.options import checked
from keras_attnvariants.utils.checks import check_address
from keras_attnvariants.utils.checks import check_positive

if TYPE_CHECKING:
    from keras_attnvariants.tuning import Budget


class Method(StrEnum):
    """The ways to choose points of a space."""

    RANDOM = "random"
    BAYESIAN = "bayesian"
    HYPERBAND = "hyperband"


class Objective(StrEnum):
    """The score of a trial, on the validation split."""

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
    int | None,
    typer.Option(
        help="Validation sentences to translate, for bleu (200).",
        min=1,
        show_default=False,
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(help="File for the table of all trials.", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """The budget of every trial."""

    updates: Annotated[int | None, budget_option("Updates.", min=1)] = None
    minutes: Annotated[
        float | None,
        budget_option(
            "Minutes for updates and validations.", callback=checked(check_positive)
        ),
    ] = None
    tokens: Annotated[
        int | None,
        budget_option("Source and target positions of all updates together.", min=1),
    ] = None
    validations: Annotated[
        int,
        typer.Option(help="Validations of a trial; in Hyperband, its epochs.", min=1),
    ] = 9

    def budget(self) -> "Budget":
        """The same for the search.

        Raises:
            ValueError: not exactly one of updates, minutes and tokens is given.
        """
        from keras_attnvariants.tuning import Budget

        return Budget(self.updates, self.minutes, self.tokens, self.validations)


@dataclass(frozen=True, kw_only=True)
class ParallelOptions:
    """Which processes run the trials.

    Raises:
        ValueError: an address is no address, or one is missing.
    """

    workers: Annotated[
        int | None,
        worker_option(
            "Processes on this machine, which share its cores (1).",
            min=0,
            show_default=False,
        ),
    ] = None
    chief: Annotated[
        str | None,
        worker_option(
            "host:port at which trials are handed out to other machines that have the "
            "folder of the search. Anyone who can reach it can take part.",
            show_default=False,
        ),
    ] = None
    worker: Annotated[
        str | None,
        worker_option(
            "Name of this worker: run trials of the chief at that address.",
            show_default=False,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.chief is not None:
            check_address("--chief", self.chief)
        elif self.worker is not None:
            raise ValueError(
                f"`--worker` needs `--chief`. Received: {self.worker!r} alone"
            )
        elif self.workers == 0:
            raise ValueError("`--workers 0` needs `--chief`. Received: no address")
        if self.worker is not None and self.workers is not None:
            raise ValueError(
                "`--worker` is one process, without `--workers`. "
                f"Received: {self.worker!r} and {self.workers}"
            )
