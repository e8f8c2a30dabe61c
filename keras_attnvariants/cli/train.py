"""`kav train`: trains a preset on a corpus, in the folder of a run."""

import contextlib
import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import get_type_hints

import typer

from keras_attnvariants.cli.catalogue import CorporaOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import flag
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SizeOptions
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.train_options import DeviceOptions
from keras_attnvariants.cli.train_options import StartOptions
from keras_attnvariants.cli.train_options import SubwordOptions
from keras_attnvariants.cli.train_options import TrainingOptions
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.importing import train_on_parts

# Descriptions of data settings in a refusal to resume a run.
DATA = {
    "corpus": "--data",
    "train_sentences": "--data, training sentences with sha256",
    "alignments": "--alignments, links with sha256",
    "validation_sentences": "--data, validation sentences with sha256",
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The run, and additions to it."""

    run: Path = option(
        "Folder of the run. If it holds a run already, that run is continued.", ...
    )
    preset: str | None = option(
        "The model; `kav presets` lists them. Default: a small one for the task, or "
        "that of the model with --from."
    )
    seed: int = option(
        "Seed of weights, dropout and the order of the batches.",
        1,
        min=0,
        max=2**32 - 1,
    )
    validate_every: int = option("Updates between two validations.", 500, min=1)
    score_sentences: int | None = option(
        "Number of validation sources to decode in each validation. The best "
        "model is then that of highest BLEU (of summaries, ROUGE-1; of speech, of the "
        "lowest word error rate) instead of lowest loss. Default: 200 for "
        "information, when they take less than 5 % of the time.",
        min=0,
    )
    samples: int = option(
        "Number of validation sources whose outputs are shown.", 2, min=0
    )
    callback: list[str] | None = option(
        "package.module:function that returns Keras callbacks. May be repeated."
    )
    imports: list[str] | None = IMPORTS


@command
def train(
    *,
    corpora: CorporaOptions,
    run: RunOptions,
    start: StartOptions,
    sizes: SizeOptions,
    subwords: SubwordOptions,
    training: TrainingOptions,
    on: DeviceOptions,
) -> None:
    """Train a model to translate, summarise or transcribe, on one corpus or several.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    check_output_folder("--run", run.run)
    train_on_parts()
    import_modules(run.imports)
    import keras_attnvariants as kav
    from keras_attnvariants.training.model_training import check_task

    settings = training.settings(corpora.alignments)
    callbacks = [made for name in run.callback or () for made in load_callbacks(name)]
    if training.minutes is not None:
        callbacks.insert(0, kav.training.TimeLimit(training.minutes))
    model = given(sizes, "vocabulary_size")
    if training.dropout is not None:
        model["dropout"] = training.dropout
    with named_by_options(), on.devices_to_use():
        # Checked before reading a corpus, which may take long.
        fine_tuning = start.fine_tuning(run.preset)
        adopted = kav.Tokenizer.adopt(start.tokenizer) if start.tokenizer else None
        preset = kav.presets.get(run.preset or start.preset(corpora.task))
        own = {} if fine_tuning is None else fine_tuning.sizes(preset)
        preset.check(sizes.vocabulary_size, **own | model)
        task = corpora.task or start.task() or preset.task
        check_task(preset, task, fine_tuning)
        corpus = corpora.load(task)
        typer.echo(corpus.report)
        kav.training.train_preset(
            preset,
            corpus,
            run.run,
            fine_tuning=fine_tuning,
            tokenizer=adopted,
            vocabulary_size=sizes.vocabulary_size,
            subwords=given(subwords),
            batch_tokens=training.batch_tokens,
            sizes=model,
            settings=settings | {"validate_every": run.validate_every},
            precision=training.precision,
            seed=run.seed,
            score_sentences=run.score_sentences,
            samples=run.samples,
            callbacks=callbacks,
        )
        corpora.show_next(run.run, corpus)


@contextlib.contextmanager
def named_by_options() -> Iterator[None]:
    """Context in which a refusal to resume a run names the options of `kav train`."""
    from keras_attnvariants.training import DifferentSettingsError

    backend = {"backend": "the environment variable KERAS_BACKEND"}
    try:
        yield
    except DifferentSettingsError as error:
        raise ValueError(error.message(backend | option_names() | DATA)) from error


def option_names() -> dict[str, str]:
    """The options of `kav train` by the names of what they set."""
    groups = get_type_hints(inspect.unwrap(train)).values()
    return {
        field.name: next(iter(field.metadata["names"]), flag(field.name))
        for group in filter(dataclasses.is_dataclass, groups)
        for field in dataclasses.fields(group)
    }


def load_callbacks(factory: str) -> list[Any]:
    """The callbacks that a function without arguments, or a callback class, makes.

    Args:
        factory: `package.module:function`, on Python's module path or in the working
            directory.

    Raises:
        ValueError: there is no such function, or it returns something else.
    """
    import keras

    make = import_named("--callback", factory)
    try:
        made = make()
    except Exception as error:
        raise ValueError(
            f"`--callback` cannot be called: {type(error).__name__}: {error}. "
            f"Received: {factory}"
        ) from error
    callbacks = list(made) if isinstance(made, (list, tuple)) else [made]
    if not all(isinstance(each, keras.callbacks.Callback) for each in callbacks):
        raise ValueError(
            "`--callback` must name a function that returns Keras callbacks. "
            f"Received: {factory}, which gives {made!r}"
        )
    return callbacks
