"""`kav tune`: a search over what a preset leaves open, into a folder of runs."""

from pathlib import Path
from typing import Any

import typer

from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.corpora import CorpusOptions
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import given
from keras_attnvariants.cli.train_options import Patience
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import SizeOptions
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import UpdateOptions
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.cli.tune_options import BleuSentences
from keras_attnvariants.cli.tune_options import BudgetOptions
from keras_attnvariants.cli.tune_options import Csv
from keras_attnvariants.cli.tune_options import Method
from keras_attnvariants.cli.tune_options import Objective
from keras_attnvariants.cli.tune_options import ParallelOptions
from keras_attnvariants.cli.tune_options import Search
from keras_attnvariants.cli.tune_options import Seed
from keras_attnvariants.cli.tune_options import Seeds
from keras_attnvariants.cli.tune_options import Trials
from keras_attnvariants.cli.tune_subject import Subject
from keras_attnvariants.utils.importing import import_tensorflow


@command
def tune(
    *,
    corpus: CorpusOptions,
    search: Search,
    subject: Subject,
    method: Method = Method.RANDOM,
    objective: Objective = Objective.LOSS,
    trials: Trials = None,
    budget: BudgetOptions,
    seeds: Seeds = 1,
    seed: Seed = 1,
    vocabulary_size: VocabularySize = None,
    sizes: SizeOptions,
    training: UpdateOptions,
    patience: Patience = None,
    bleu_sentences: BleuSentences = None,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    csv: Csv = None,
    parallel: ParallelOptions,
) -> None:
    """Search for the best attention, sizes or training of a preset on a corpus.

    Every trial is a run in a folder of its own, with the same budget. After an
    interruption, the same command continues where it stopped. Ends with a table of all
    trials, in which * is the front of quality against number of parameters.

    [bold]Example:[/bold] kav tune --data multi30k --source en --target de
    --search runs/offsets --space you2020/offsets --updates 6000
    """
    check_output_folder("--search", search)
    if bleu_sentences is not None and objective != Objective.BLEU:
        raise ValueError("--bleu-sentences needs --objective bleu.")
    if csv is not None and parallel.worker is not None:
        raise ValueError("--csv is for the chief: a worker has no table.")
    model = given(vocabulary_size=vocabulary_size) | sizes.given()
    subject.check(model)
    import_tensorflow()
    import keras_attnvariants as kav

    limit = budget.budget()
    loaded = corpus.load()
    explored = subject.explore(loaded, model)
    prepared = kav.tuning.search(
        explored.preset,
        loaded,
        explored.space.with_training(**training.of_updates()),
        search,
        budget=limit,
        objective=objective.value,
        method=method.value,
        max_trials=trials,
        seeds=range(1, seeds + 1),
        seed=seed,
        settings=given(patience=patience),
        precision=precision.value,
        **given(bleu_sentences=bleu_sentences),
    )
    if parallel.worker is not None:
        return prepared.join(str(parallel.chief), parallel.worker)
    workers = 1 if parallel.workers is None else parallel.workers
    result = prepared.run(workers, parallel.chief)
    show(result, csv, is_proposal=subject.from_locality is not None)


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
