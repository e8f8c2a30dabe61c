"""`kav train`: a preset on a corpus, into the folder of a run."""

import contextlib
import inspect
import os
import shlex
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.catalogue import CorporaOptions
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.options import Imports
from keras_attnvariants.cli.options import check_output_folder
from keras_attnvariants.cli.options import checked
from keras_attnvariants.cli.options import given
from keras_attnvariants.cli.options import import_modules
from keras_attnvariants.cli.train_options import BleuSentences
from keras_attnvariants.cli.train_options import Callback
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import PresetName
from keras_attnvariants.cli.train_options import Run
from keras_attnvariants.cli.train_options import Samples
from keras_attnvariants.cli.train_options import Seed
from keras_attnvariants.cli.train_options import SizeOptions
from keras_attnvariants.cli.train_options import SubwordOptions
from keras_attnvariants.cli.train_options import TrainingOptions
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import ValidateEvery
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.importing import import_named

# Options of `kav train` by the names of the arguments that they set, where a hyphen for
# an underscore is not all that differs.
OPTIONS = {
    "num_layers": "--layers",
    "hidden_dim": "--width",
    "intermediate_dim": "--feed-forward",
    "num_heads": "--heads",
    "clipnorm": "--clip-norm",
    "model_type": "--subwords",
    "corpus": "--data",
    "train_sentences": "--data, training sentences with sha256",
    "alignments": "--alignments, links with sha256",
    "validation_sentences": "--data, validation sentences with sha256",
}


def device(help: str, **options: Any) -> Any:
    """An option in the panel of devices."""
    panel = "Devices and processes (KERAS_BACKEND=jax)"
    return typer.Option(help=help, rich_help_panel=panel, **options)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Where a model is trained.

    Raises:
        ValueError: an option lacks another.
    """

    devices: Annotated[
        int | None,
        device("Devices of each process (1; all with --coordinator).", min=1),
    ] = None
    model_parallel: Annotated[
        int | None,
        device(
            "Devices of a process among which each copy of the model is divided (1).",
            min=1,
        ),
    ] = None
    coordinator: Annotated[
        str | None, device("host:port of process 0, where it waits for the others.")
    ] = None
    process: Annotated[
        int | None,
        device("Number of this process; number 0 writes the folder of the run.", min=0),
    ] = None
    processes: Annotated[
        int | None,
        device("How many processes there are, each started with this command.", min=2),
    ] = None
    wait: Annotated[
        float | None,
        device(
            "How long to wait for all processes, in seconds (300).",
            callback=checked(check_positive),
        ),
    ] = None

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
        if not self._several:
            yield
            return
        from keras_attnvariants.training import several_devices

        where = several_devices(
            self.devices,
            model_parallel=self.model_parallel or 1,
            coordinator=self.coordinator,
            process=self.process or 0,
            processes=self.processes or 1,
            wait=self.wait or 300.0,
        )
        with where, contextlib.ExitStack() as stack:
            if self.process:
                nowhere = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(nowhere))
            yield


@command
def train(
    *,
    corpora: CorporaOptions,
    run: Run,
    preset: PresetName = "kav/hc-sa/bible",
    vocabulary_size: VocabularySize = None,
    subwords: SubwordOptions,
    sizes: SizeOptions,
    training: TrainingOptions,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    seed: Seed = 1,
    validate_every: ValidateEvery = 500,
    bleu_sentences: BleuSentences = None,
    samples: Samples = 2,
    callback: Callback = None,
    on: DeviceOptions,
    imports: Imports = None,
) -> None:
    """Train a translation model on a parallel corpus, or on several.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    check_output_folder("--run", run)
    import_modules(imports)
    import keras_attnvariants as kav

    callbacks = load_callbacks(callback or ())
    training.check_guidance(is_aligned=any(corpora.alignments or ()))
    with named_by_options(), on.devices_to_use():
        chosen = kav.presets.get(preset)
        model = sizes.given() | given(dropout=training.dropout)
        chosen.check(vocabulary_size, **model)
        limits = training.limits()
        corpus = corpora.load()
        typer.echo(corpus.report)
        kav.training.train_preset(
            chosen,
            corpus,
            run,
            vocabulary_size=vocabulary_size,
            subwords=subwords.given(),
            batch_tokens=training.batch_tokens,
            sizes=model,
            settings=training.settings() | {"validate_every": validate_every},
            precision=precision.value,
            seed=seed,
            bleu_sentences=bleu_sentences,
            samples=samples,
            callbacks=[*limits, *callbacks],
        )
        model_of = ["--model", str(run)]
        score = shlex.join(["kav", "evaluate", *model_of, *corpora.example()])
        use = ["kav", "translate", *model_of, *corpora.tag(), "A sentence."]
        typer.echo(f"Next: {score}\n      {shlex.join(use)}")


@contextlib.contextmanager
def named_by_options() -> Iterator[None]:
    """Context in which a refusal to resume a run names the options of `kav train`."""
    from keras_attnvariants.training import DifferentSettingsError

    names = inspect.signature(train).parameters
    options = {name: f"--{name.replace('_', '-')}" for name in names}
    try:
        yield
    except DifferentSettingsError as error:
        raise ValueError(error.message(options | OPTIONS)) from error


def load_callbacks(factories: Sequence[str]) -> list[Any]:
    """The callbacks that some functions return.

    Args:
        factories: each `package.module:function`, found as Python finds modules, or in
            the working directory. The function takes no arguments and returns one Keras
            callback or a list of them; a class of callbacks will do.

    Raises:
        ValueError: there is no such function, or it returns something else.
    """
    return [callback for factory in factories for callback in _made(factory)]


def _made(factory: str) -> list[Any]:
    import keras

    module, _, function = factory.partition(":")
    if not module or not function:
        raise ValueError(
            f"`--callback` must be `package.module:function`. Received: {factory}"
        )
    try:
        found = getattr(import_named("--callback", factory), function)
    except AttributeError as error:
        raise ValueError(
            f"`--callback` cannot be imported: {error}. Received: {factory}"
        ) from error
    made = found() if callable(found) else found
    callbacks = list(made) if isinstance(made, (list, tuple)) else [made]
    for callback in callbacks:
        if not isinstance(callback, keras.callbacks.Callback):
            raise ValueError(
                "`--callback` must name a function that returns Keras callbacks. "
                f"Received: {factory}, which gives {callback!r}"
            )
    return callbacks
