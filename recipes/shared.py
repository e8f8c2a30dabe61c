"""What the recipes share: options, clear errors, models from their folders."""

import json
import os
import sys
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

# Before TensorFlow is imported: warnings and errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras_attnvariants as kav  # noqa: E402

Data = Annotated[
    str,
    typer.Option(
        help="A folder with train.en, train.de, validation.en, … (also .gz), a TSV "
        "file with two columns, or a registered name such as bible-de-en.",
        show_default=False,
    ),
]
Source = Annotated[str, typer.Option(help="Language to translate from.")]
Target = Annotated[str, typer.Option(help="Language to translate into.")]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        "--run",
        help="Folder of a run (the better of its best and its averaged weights is "
        "taken), or of one model.",
        show_default=False,
    ),
]
SavedModel = Annotated[
    Path | None,
    typer.Option(help="Folder that export.py wrote; it has its own beam size."),
]
BeamSize = Annotated[int, typer.Option(help="Hypotheses kept per sentence.")]
LengthPenalty = Annotated[
    float, typer.Option(help="Exponent of the length normalisation.")
]


class Precision(StrEnum):
    """What a model computes in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="What to compute in; default: as in training.",
        show_default=False,
    ),
]

# One batch of texts between two steps of a progress bar.
CHUNK = 128


def new_app() -> typer.Typer:
    """A command-line program whose errors are ours to show."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
    )


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turns what is wrong with the input into one line and exit code 2."""
    try:
        import_tensorflow()
        yield
    except (ValueError, OSError, ArithmeticError) as error:
        line = " ".join(str(error).split())
        typer.echo(f"Error: {line}", err=True)
        raise typer.Exit(2) from error


def import_tensorflow() -> None:
    """Imports TensorFlow without its greeting, which no log level silences."""
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    original, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        tf.config.list_logical_devices()
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.close(nowhere)


def load_model(folder: Path, precision: Precision | None = None):
    """The model of a folder, in a precision, and its tokenizer.

    Raises:
        FileNotFoundError: there is no model, or it has no tokenizer.
    """
    if (folder / "log.jsonl").is_file():
        folder = folder / better_of(folder / "log.jsonl")
    model, tokenizer = kav.load_model(folder)
    if precision is not None:
        model = in_precision(model, precision)
    return model, tokenizer


def in_precision(model, precision: Precision):
    """The same model, computing in a precision."""
    if precision == Precision.INT8:
        with warnings.catch_warnings():
            # Keras tells of every layer that has nothing to quantize.
            warnings.simplefilter("ignore")
            model.quantize("int8")
        return model
    policies = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "mixed_bfloat16"}
    config = model.get_config() | {"dtype": policies[precision]}
    other = type(model).from_config(config)
    other.set_weights(model.get_weights())
    return other


def better_of(log: Path) -> str:
    """Which model of a run validated better, `"best"` or `"averaged"`.

    Averages of weights that still improve fast are worse than the last of them, and
    a run that went on after its end has an old average.
    """
    events = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    averaged = [event for event in events if event["event"] == "averaged"]
    if not averaged:
        return "best"
    for name, best in (("val_bleu", max), ("val_loss", min)):
        values = [event[name] for event in events if name in event]
        if values:
            return "averaged" if averaged[-1][name] == best(values) else "best"
    return "averaged"


def translators(
    model: Path | None,
    saved_model: Path | None,
    beam_size: int,
    length_penalty: float,
    precision: Precision | None = None,
) -> dict[Path, Callable[[list[str]], list[str]]]:
    """What translates lists of texts, by the folder that it comes from."""
    found: dict[Path, Callable] = {}
    if model is not None:
        # Without XLA: compiling every shape takes longer than a test set.
        found[model] = kav.Translator(
            *load_model(model, precision),
            beam_size=beam_size,
            length_penalty=length_penalty,
            xla=False,
        ).translate
    if saved_model is not None:
        found[saved_model] = kav.serving.SavedTranslator(saved_model).translate
    return found


def translate_all(
    translate: Callable[[list[str]], list[str]], texts: list[str], description: str
) -> list[str]:
    """Translates with a progress bar; texts of equal length go together."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    chunks = [order[start : start + CHUNK] for start in range(0, len(order), CHUNK)]
    translations = [""] * len(texts)
    # Standard output is for translations alone.
    bar = track(chunks, description, transient=True, console=Console(stderr=True))
    for places in bar:
        found = translate([texts[place] for place in places])
        for place, text in zip(places, found, strict=True):
            translations[place] = text
    return translations
