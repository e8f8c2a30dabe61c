"""Export a model as a SavedModel that translates text to text."""

import json
from pathlib import Path
from typing import Annotated

import typer
from shared import BeamSize
from shared import LengthPenalty
from shared import Model
from shared import PrecisionOption
from shared import clear_errors
from shared import load_model
from shared import new_app

import keras_attnvariants as kav

app = new_app()


@app.command()
def main(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            help="Folder of all versions, such as saved_models/en-de.",
            show_default=False,
        ),
    ],
    version: Annotated[
        int | None,
        typer.Option(help="Default: one more than the newest in the folder."),
    ] = None,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    precision: PrecisionOption = None,
    n_best: Annotated[
        int | None, typer.Option(help="What nbest returns; default: the beam size.")
    ] = None,
    max_batch: Annotated[
        int, typer.Option(help="Sentences in a request; more are refused.")
    ] = 64,
    max_characters: Annotated[
        int, typer.Option(help="Of a text; the rest is cut off and reported.")
    ] = 4096,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Likewise for subwords; default: 256, or the model's limit."),
    ] = None,
    ids_only: Annotated[
        bool,
        typer.Option(
            "--ids-only",
            help="Token ids in and out: loads without TensorFlow Text.",
        ),
    ] = False,
) -> None:
    """Export a model as a SavedModel for TensorFlow Serving.

    Tokenisation, beam search and the limits are all inside; no Python is needed.

    [bold]Example:[/bold] export.py --model runs/multi30k --output saved_models/multi30k
    """
    with clear_errors():
        loaded, tokenizer = load_model(model, precision)
        path = kav.serving.export(
            loaded,
            None if ids_only else tokenizer,
            output,
            beam_size=beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            max_batch=max_batch,
            max_characters=max_characters,
            max_tokens=max_tokens,
            version=version,
        )
        info = json.loads((path / "assets.extra" / "model_info.json").read_text())
        size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        typer.echo(f"{path} ({size / 1e6:.1f} MB)")
        for name, signature in info["signatures"].items():
            typer.echo(f"  {name}: {signature['doc']}")
        if not ids_only:
            typer.echo(f"Next: translate.py --saved-model {output} 'A sentence.'")


if __name__ == "__main__":
    app()
