"""`kav train`: a preset on a corpus, into the folder of a run."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import ClassVar
from typing import Literal

import typer

from keras_attnvariants.cli.catalogue import CorporaOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.commands import flag
from keras_attnvariants.cli.commands import given
from keras_attnvariants.cli.commands import option
from keras_attnvariants.cli.options import IMPORTS
from keras_attnvariants.cli.options import SizeOptions
from keras_attnvariants.cli.options import UpdateOptions
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate
from keras_attnvariants.utils.importing import import_named

# What a refusal to resume a run says of the data.
DATA = {
    "corpus": "--data",
    "train_sentences": "--data, training sentences with sha256",
    "alignments": "--alignments, links with sha256",
    "validation_sentences": "--data, validation sentences with sha256",
}


@dataclass(frozen=True, kw_only=True)
class SubwordOptions:
    """Options of the learning of subwords."""

    PANEL: ClassVar[str] = SizeOptions.PANEL

    subwords: Literal["unigram", "bpe"] | None = option(
        "How subwords are learned (unigram).", sets="model_type"
    )
    character_coverage: float | None = option(
        "Share of characters that get a subword (1.0).", min=0.9, max=1.0
    )


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(UpdateOptions):
    """Training of the model, where that is not as in the preset."""

    steps: int | None = option("Number of updates.", min=1)
    minutes: float | None = option(
        "End earlier, when the time is up, over all resumes.", check=check_positive
    )
    accumulate: int | None = option(
        "Batches whose gradients make an update together (1).", min=1
    )
    dropout: float | None = option("On embeddings and sub-layers.", check=check_rate)
    label_smoothing: float | None = option(
        "Probability taken from the label.", check=check_rate
    )
    clip_norm: float | None = option(
        "Longest gradient; none by default.", check=check_positive, sets="clipnorm"
    )
    ema: float | None = option(
        "Momentum of a moving average of the weights, say 0.999, that validations and "
        "the best model have; none by default.",
        check=check_rate,
    )
    alignment_weight: float | None = option(
        "Factor of the loss of --alignments.", check=check_positive
    )
    alignment_layer: int | None = option(
        "Decoder layer whose attention to the source follows --alignments, from 1; by "
        "default the last but one that can.",
        min=1,
    )
    alignment_head: int | None = option(
        "Head that follows them, from 1; by default the mean of all.", min=1
    )
    average_last: int | None = option(
        "Validated weights to keep, and to average.", min=1
    )
    save_every: int | None = option("Updates between two saved states (500).", min=1)

    def settings(self, alignments: list[str] | None) -> dict[str, Any]:
        """Those that were given, by the names of the fields of `TrainingConfig`.

        Raises:
            ValueError: one needs alignments.
        """
        from keras_attnvariants.training.training_config import with_schedule

        found = given(self, "batch_tokens", "minutes", "dropout", "precision")
        for name, value in found.items():
            if name.startswith("alignment_") and not any(alignments or ()):
                raise ValueError(
                    f"{flag(name)} needs --alignments. Received: {value} without"
                )
        return with_schedule(found)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Devices and processes that train a model.

    Raises:
        ValueError: an option lacks another.
    """

    PANEL: ClassVar[str] = "Devices and processes (KERAS_BACKEND=jax)"

    devices: int | None = option(
        "Devices of each process (1; all with --coordinator).", min=1
    )
    model_parallel: int | None = option(
        "Devices of a process among which each copy of the model is divided (1).",
        min=1,
    )
    coordinator: str | None = option(
        "host:port of process 0, where it waits for the others."
    )
    process: int | None = option(
        "Number of this process; number 0 writes the folder of the run.", min=0
    )
    processes: int | None = option(
        "How many processes there are, each started with this command.", min=2
    )
    wait: float | None = option(
        "How long to wait for all processes, in seconds (300).", check=check_positive
    )

    def __post_init__(self) -> None:
        if self.coordinator is None:
            if (self.process, self.processes, self.wait) != (None, None, None):
                raise ValueError("--process, --processes and --wait need --coordinator")
        elif self.process is None or self.processes is None:
            raise ValueError("--coordinator needs --process and --processes")
        if self.model_parallel is not None and not self._several:
            raise ValueError(
                "--model-parallel needs --devices of more than 1, or --coordinator"
            )

    @property
    def _several(self) -> bool:
        return self.coordinator is not None or self.devices not in (None, 1)

    @contextlib.contextmanager
    def devices_to_use(self) -> Iterator[None]:
        """Context in which a model is trained there, and process 0 alone prints."""
        with contextlib.ExitStack() as stack:
            if self._several:
                from keras_attnvariants.training import several_devices

                stack.enter_context(several_devices(**given(self)))
            if self.process:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
            yield


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The run, and what joins it."""

    run: Path = option(
        "Folder of the run. If it holds a run already, that run is continued.", ...
    )
    preset: str = option("Which model; `kav presets` lists them.", "kav/hc-sa/bible")
    seed: int = option(
        "Of weights, dropout and the order of the batches.", 1, min=0, max=2**32 - 1
    )
    validate_every: int = option("Updates between two validations.", 500, min=1)
    bleu_sentences: int | None = option(
        "Number of validation sentences to translate in each validation. The best "
        "model is then that of highest BLEU instead of lowest loss. Default: 200 for "
        "information, when they take less than 5 % of the time.",
        min=0,
    )
    samples: int = option(
        "Number of validation sentences whose translations are shown.", 2, min=0
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
    sizes: SizeOptions,
    subwords: SubwordOptions,
    training: TrainingOptions,
    on: DeviceOptions,
) -> None:
    """Train a translation model on a parallel corpus, or on several.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    check_output_folder("--run", run.run)
    import_modules(run.imports)
    import keras_attnvariants as kav

    settings = training.settings(corpora.alignments)
    callbacks = [made for name in run.callback or () for made in load_callbacks(name)]
    if training.minutes is not None:
        callbacks.insert(0, kav.training.TimeLimit(training.minutes))
    model = given(sizes, "vocabulary_size")
    if training.dropout is not None:
        model["dropout"] = training.dropout
    with named_by_options(), on.devices_to_use():
        preset = kav.presets.get(run.preset)
        preset.check(sizes.vocabulary_size, **model)
        corpus = corpora.load()
        typer.echo(corpus.report)
        kav.training.train_preset(
            preset,
            corpus,
            run.run,
            vocabulary_size=sizes.vocabulary_size,
            subwords=given(subwords),
            batch_tokens=training.batch_tokens,
            sizes=model,
            settings=settings | {"validate_every": run.validate_every},
            precision=training.precision,
            seed=run.seed,
            bleu_sentences=run.bleu_sentences,
            samples=run.samples,
            callbacks=callbacks,
        )
        corpora.show_next(run.run)


@contextlib.contextmanager
def named_by_options() -> Iterator[None]:
    """Context in which a refusal to resume a run names the options of `kav train`."""
    from keras_attnvariants.training import DifferentSettingsError

    options = {"backend": "the environment variable KERAS_BACKEND"}
    groups = (CorporaOptions, RunOptions, SizeOptions, SubwordOptions, TrainingOptions)
    for group in groups:
        for field in dataclasses.fields(group):
            options[field.metadata.get("sets", field.name)] = flag(field.name)
    try:
        yield
    except DifferentSettingsError as error:
        raise ValueError(error.message(options | DATA)) from error


def load_callbacks(factory: str) -> list[Any]:
    """The callbacks that a function without arguments, or a class of them, makes.

    Args:
        factory: `package.module:function`, found as Python finds modules, or in the
            working directory.

    Raises:
        ValueError: there is no such function, or it returns something else.
    """
    import keras

    _, _, function = factory.partition(":")
    if not function or factory.startswith(":"):
        raise ValueError(
            f"`--callback` must be `package.module:function`. Received: {factory}"
        )
    home = import_named("--callback", factory)
    try:
        made = getattr(home, function)()
    except Exception as error:
        raise ValueError(
            f"`--callback` cannot be called: {type(error).__name__}: {error}. "
            f"Received: {factory}"
        ) from error
    callbacks = list(made) if isinstance(made, (list, tuple)) else [made]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                "`--callback` must name a function that returns Keras callbacks. "
                f"Received: {factory}, which gives {callback!r}"
            )
    return callbacks
