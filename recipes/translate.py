"""Translate sentences with a model or a SavedModel."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from shared import BeamSize
from shared import LengthPenalty
from shared import Model
from shared import PrecisionOption
from shared import SavedModel
from shared import clear_errors
from shared import new_app
from shared import translate_all
from shared import translators

app = new_app()


@app.command()
def main(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sentences; without any, one per line of standard input.",
            show_default=False,
        ),
    ] = None,
    model: Model = None,
    saved_model: SavedModel = None,
    input: Annotated[
        Path | None, typer.Option(help="File to read instead, one sentence per line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write to; default: standard output.")
    ] = None,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    precision: PrecisionOption = None,
) -> None:
    """Translate sentences; one line in, one line out.

    [bold]Example:[/bold] echo 'Two men play.' | translate.py --model runs/multi30k
    """
    with clear_errors():
        if (model is None) == (saved_model is None):
            raise ValueError("Give either --model or --saved-model.")
        sentences = read(texts, input)
        [translate] = translators(
            model, saved_model, beam_size, length_penalty, precision
        ).values()
        found = translate_all(translate, sentences, "Translating")
        lines = "".join(f"{line}\n" for line in found)
        if output is None:
            typer.echo(lines, nl=False)
        else:
            output.write_text(lines, "utf-8")


def read(texts: list[str] | None, path: Path | None) -> list[str]:
    """The sentences given as arguments, in a file, or on standard input."""
    if texts and path:
        raise ValueError("Give either sentences or --input.")
    if texts:
        return texts
    data = path.read_bytes() if path else sys.stdin.buffer.read()
    return data.decode("utf-8", "replace").replace("\r\n", "\n").splitlines()


if __name__ == "__main__":
    app()
