"""`kav tune`: a search over what a preset leaves open, into a folder of runs."""

from pathlib import Path
from typing import Any

import typer

from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.options import Data
from keras_attnvariants.cli.options import MaxInvalid
from keras_attnvariants.cli.options import Source
from keras_attnvariants.cli.options import Target
from keras_attnvariants.cli.train import given
from keras_attnvariants.cli.train_options import FeedForward
from keras_attnvariants.cli.train_options import Heads
from keras_attnvariants.cli.train_options import Layers
from keras_attnvariants.cli.train_options import Patience
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.cli.train_options import Width
from keras_attnvariants.cli.tune_options import BleuSentences
from keras_attnvariants.cli.tune_options import Chief
from keras_attnvariants.cli.tune_options import Csv
from keras_attnvariants.cli.tune_options import Distance
from keras_attnvariants.cli.tune_options import FromLocality
from keras_attnvariants.cli.tune_options import Method
from keras_attnvariants.cli.tune_options import Minutes
from keras_attnvariants.cli.tune_options import Nearness
from keras_attnvariants.cli.tune_options import Objective
from keras_attnvariants.cli.tune_options import PresetName
from keras_attnvariants.cli.tune_options import Search
from keras_attnvariants.cli.tune_options import Seed
from keras_attnvariants.cli.tune_options import Seeds
from keras_attnvariants.cli.tune_options import Space
from keras_attnvariants.cli.tune_options import Tokens
from keras_attnvariants.cli.tune_options import Trials
from keras_attnvariants.cli.tune_options import Updates
from keras_attnvariants.cli.tune_options import Validations
from keras_attnvariants.cli.tune_options import Worker
from keras_attnvariants.cli.tune_options import Workers
from keras_attnvariants.cli.tune_subject import Subject
from keras_attnvariants.cli.tune_subject import sizes_given


def tune(
    data: Data,
    source: Source,
    target: Target,
    search: Search,
    space: Space = None,
    from_locality: FromLocality = None,
    distance: Distance = 2,
    nearness: Nearness = 0.25,
    max_invalid: MaxInvalid = 0.01,
    preset: PresetName = None,
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
        sizes = sizes_given(vocabulary_size, layers, width, feed_forward, heads)
        subject = Subject(space, from_locality, distance, nearness, preset, sizes)
        import_tensorflow()
        import keras_attnvariants as kav

        budget = kav.tuning.Budget(updates, minutes, tokens, validations)
        corpus = kav.data.load_corpus(data, source, target, max_invalid=max_invalid)
        explored = subject.explore(corpus)
        prepared = kav.tuning.search(
            explored.preset,
            corpus,
            explored.space,
            search,
            budget=budget,
            objective=objective.value,
            method=method.value,
            max_trials=trials,
            seeds=range(1, seeds + 1),
            seed=seed,
            bleu_sentences=bleu_sentences,
            settings=given(patience=patience),
            precision=precision.value,
        )
        if worker is not None:
            prepared.join(str(chief), worker)
        else:
            show(prepared.run(workers, chief), csv, is_proposal=bool(from_locality))


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


def show(result: Any, csv: Path | None, is_proposal: bool) -> None:
    """Print all trials, what became of a proposal, and what can be done with the best.

    Raises:
        ValueError: no trial has ended well, or none of a proposal's hybrids.
    """
    from rich.console import Console

    for trial, error in result.failed.items():
        typer.echo(f"Trial {trial} failed: {error}")
    if not result.records:
        raise ValueError("No trial has ended well")
    Console().print(result)
    if csv is not None:
        result.to_csv(csv)
    if is_proposal:
        from keras_attnvariants.tuning import judge

        judgement = judge(result)
        Console().print(judgement)
        typer.echo(judgement.sentence)
    typer.echo(f"Next: kav evaluate --model {result.run_folder()} …")
