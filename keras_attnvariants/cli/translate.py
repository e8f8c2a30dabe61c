"""`kav translate`: text in, translations out."""

import sys
from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from typing import TextIO

import typer

from keras_attnvariants.cli.checks import check_output_file
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.models import check_folders
from keras_attnvariants.cli.models import translators
from keras_attnvariants.cli.options import BeamSize
from keras_attnvariants.cli.options import LengthPenalty
from keras_attnvariants.cli.options import Model
from keras_attnvariants.cli.options import PrecisionOption
from keras_attnvariants.cli.options import SavedModel
from keras_attnvariants.cli.texts import FIRST_CHUNK
from keras_attnvariants.cli.texts import translated
from keras_attnvariants.utils.lines import on_one_line
from keras_attnvariants.utils.lines import text_lines

Texts = Annotated[
    list[str] | None,
    typer.Argument(
        help="Sentences; without any, one per line of standard input.",
        show_default=False,
    ),
]
Input = Annotated[
    Path | None,
    typer.Option(
        help="File to read instead, one sentence per line.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="File to write to; default: standard output.", show_default=False
    ),
]


def translate(
    texts: Texts = None,
    model: Model = None,
    saved_model: SavedModel = None,
    input: Input = None,
    output: Output = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    precision: PrecisionOption = None,
) -> None:
    """Translate sentences: one line in, one line out.

    [bold]Example:[/bold] echo 'Two men play.' | kav translate --model runs/multi30k
    """
    with clear_errors():
        if (model is None) == (saved_model is None):
            raise ValueError("Give either --model or --saved-model.")
        if texts and input:
            raise ValueError("Give either sentences or --input.")
        check_folders(model, saved_model, precision)
        check_files(input, output)
        with sentences(texts, input) as (lines, chunk):
            [system] = translators(
                model, saved_model, beam_size, length_penalty, precision
            ).values()
            with writable(output) as file:
                for line in translated(system, lines, chunk):
                    file.write(f"{on_one_line(line)}\n")
                    file.flush()


def check_files(input: Path | None, output: Path | None) -> None:
    """Raises before any work if a file cannot be read or written.

    Raises:
        ValueError: the translations would overwrite the sentences.
        OSError: a file or its folder is missing, or is no file.
    """
    check_output_file(output)
    if input and output and output.exists() and output.samefile(input):
        raise ValueError(f"--input and --output must differ. Received: {input} twice")


@contextmanager
def sentences(
    texts: list[str] | None, path: Path | None
) -> Iterator[tuple[Iterable[str], int]]:
    """What to translate, and how much of it to read before the first translation."""
    if texts:
        yield texts, FIRST_CHUNK
    elif path:
        with path.open("rb") as file:
            yield text_lines(file), FIRST_CHUNK
    else:
        # Who types a sentence waits for its translation.
        yield text_lines(sys.stdin.buffer), 1 if sys.stdin.isatty() else FIRST_CHUNK


@contextmanager
def writable(path: Path | None) -> Iterator[TextIO]:
    """The file to write to, or standard output."""
    if path is None:
        yield sys.stdout
    else:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
