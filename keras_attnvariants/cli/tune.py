"""`kav tune`: a search over what a preset leaves open, into a folder of runs."""

import dataclasses
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.checks import checked
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.options import Data
from keras_attnvariants.cli.options import MaxInvalid
from keras_attnvariants.cli.options import Source
from keras_attnvariants.cli.options import Target
from keras_attnvariants.cli.train import FeedForward
from keras_attnvariants.cli.train import Heads
from keras_attnvariants.cli.train import Layers
from keras_attnvariants.cli.train import Patience
from keras_attnvariants.cli.train import PrecisionOption
from keras_attnvariants.cli.train import TrainingPrecision
from keras_attnvariants.cli.train import VocabularySize
from keras_attnvariants.cli.train import Width
from keras_attnvariants.cli.train import given
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
    str,
    typer.Option(
        help="What varies: a TOML file, or a name (you2020/offsets, "
        "you2020/all-offsets, loem2022/layer-hybrids, attention, attention-per-layer, "
        "training).",
        show_default=False,
    ),
]
PresetName = Annotated[
    str, typer.Option(help="What is trained where the space says nothing else.")
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


def tune(
    data: Data,
    source: Source,
    target: Target,
    search: Search,
    space: Space,
    max_invalid: MaxInvalid = 0.01,
    preset: PresetName = "kav/hc-sa/multi30k",
    method: Method = Method.RANDOM,
    objective: Objective = Objective.LOSS,
    trials: Trials = None,
    updates: Updates = None,
    minutes: Minutes = None,
    tokens: Tokens = None,
    validations: Validations = 9,
    seeds: Seeds = 1,
    seed: Seed = 1,
    vocabulary_size: VocabularySize = None,
    layers: Layers = None,
    width: Width = None,
    feed_forward: FeedForward = None,
    heads: Heads = None,
    patience: Patience = None,
    bleu_sentences: BleuSentences = 200,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    csv: Csv = None,
    workers: Workers = 1,
    chief: Chief = None,
    worker: Worker = None,
) -> None:
    """Search for the best attention, sizes or training of a preset on a corpus.

    Every trial is a run in a folder of its own, with the same budget. After an
    interruption, the same command continues where it stopped. Ends with a table of all
    trials, in which * is the front of quality against number of parameters.

    [bold]Example:[/bold] kav tune --data multi30k --source en --target de
    --search runs/offsets --space you2020/offsets --updates 6000
    """
    with clear_errors():
        check_output_folder("--search", search)
        check_parallel(workers, chief, worker)
        sizes = given(
            num_layers=layers,
            hidden_dim=width,
            intermediate_dim=feed_forward,
            num_heads=heads,
        )
        import_tensorflow()
        import keras_attnvariants as kav

        budget = kav.tuning.Budget(updates, minutes, tokens, validations)
        chosen = with_sizes(kav.presets.get(preset), sizes)
        explored = load_space(space, chosen)
        corpus = kav.data.load_corpus(data, source, target, max_invalid=max_invalid)
        prepared = kav.tuning.search(
            chosen,
            corpus,
            explored,
            search,
            budget=budget,
            objective=objective.value,
            method=method.value,
            max_trials=trials,
            seeds=range(1, seeds + 1),
            seed=seed,
            vocabulary_size=vocabulary_size,
            bleu_sentences=bleu_sentences,
            settings=given(patience=patience),
            precision=precision.value,
        )
        if worker is not None:
            prepared.join(str(chief), worker)
            return
        show(prepared.run(workers, chief), csv)


def check_parallel(workers: int, chief: str | None, worker: str | None) -> None:
    """Raises unless the options about parallel trials go together.

    Raises:
        ValueError: an address is no address, or one is missing.
    """
    if chief is not None:
        host, _, port = chief.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ValueError(f"`--chief` must be host:port. Received: {chief!r}")
    if chief is None and worker is not None:
        raise ValueError(f"`--worker` needs `--chief`. Received: {worker!r} alone")
    if chief is None and workers == 0:
        raise ValueError("`--workers 0` needs `--chief`. Received: no address")


def with_sizes(preset: Any, sizes: dict[str, Any]) -> Any:
    """A preset with other sizes, which its search spaces are made for.

    Raises:
        ValueError: the preset has no such size.
    """
    if unknown := sorted(sizes.keys() - preset.options.keys()):
        raise ValueError(
            f"{preset.name} has no {', '.join(unknown)}, only "
            f"{', '.join(preset.options)}. Received: {sizes}"
        )
    return dataclasses.replace(preset, options={**preset.options, **sizes})


def load_space(spec: str, preset: Any) -> Any:
    """A search space from a TOML file, or by its name.

    Raises:
        ValueError: the file is no TOML or describes no space, or the name is unknown.
        OSError: the file cannot be read.
    """
    from keras_attnvariants.tuning import SearchSpace
    from keras_attnvariants.tuning import named_space

    path = Path(spec)
    if path.suffix != ".toml":
        return named_space(spec, preset)
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    return SearchSpace.from_dict(values)


def show(result: Any, csv: Path | None) -> None:
    """Print all trials, and what can be done with the best."""
    from rich.console import Console

    for trial, error in result.failed.items():
        typer.echo(f"Trial {trial} failed: {error}")
    if not result.records:
        raise ValueError("No trial has ended well")
    Console().print(result)
    if csv is not None:
        result.to_csv(csv)
    typer.echo(f"Next: kav evaluate --model {result.run_folder()} …")
