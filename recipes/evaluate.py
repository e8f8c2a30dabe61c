"""Score a model, a SavedModel or both on a test set."""

from pathlib import Path
from typing import Annotated

import typer
from shared import BeamSize
from shared import Data
from shared import LengthPenalty
from shared import Model
from shared import PrecisionOption
from shared import SavedModel
from shared import Source
from shared import Target
from shared import clear_errors
from shared import new_app
from shared import translate_all
from shared import translators

import keras_attnvariants as kav

app = new_app()


@app.command()
def main(
    data: Data,
    source: Source,
    target: Target,
    model: Model = None,
    saved_model: SavedModel = None,
    split: Annotated[str, typer.Option(help="Which part of the corpus.")] = "test",
    sentences: Annotated[
        int | None, typer.Option(help="Only the first ones of the split.")
    ] = None,
    beam_size: BeamSize = 4,
    length_penalty: LengthPenalty = 0.6,
    precision: PrecisionOption = None,
    tokenize: Annotated[
        str, typer.Option(help="sacreBLEU's tokenizer: 13a, zh, ja-mecab, char, …")
    ] = "13a",
    output: Annotated[
        Path | None,
        typer.Option(help="File to write the translations to, one per line."),
    ] = None,
) -> None:
    """Score a model, a SavedModel or both on a test set: BLEU, chrF and TER.

    The signature behind each score says how sacreBLEU computed it; quote it too.

    [bold]Example:[/bold] evaluate.py --model runs/multi30k
    --data multi30k --source en --target de --split test2016
    """
    with clear_errors():
        if model is None and saved_model is None:
            raise ValueError("Give --model, --saved-model, or both to compare them.")
        corpus = kav.data.load_corpus(data, source, target)
        sources, references = (texts[:sentences] for texts in corpus.read_lines(split))
        systems = translators(model, saved_model, beam_size, length_penalty, precision)
        for path, translate in systems.items():
            translations = translate_all(translate, sources, str(path))
            typer.echo(f"{path} on {len(sources)} sentences of {split}:")
            for score in scores(translations, references, tokenize):
                typer.echo(f"  {score.name:5} {score.value:6.2f}  {score.signature}")
            if output is not None:
                output.write_text("".join(f"{t}\n" for t in translations), "utf-8")


def scores(translations: list[str], references: list[str], tokenize: str) -> tuple:
    """BLEU, chrF and TER."""
    metrics = kav.evaluation
    return (
        metrics.corpus_bleu(translations, references, tokenize=tokenize),
        metrics.corpus_chrf(translations, references),
        metrics.corpus_ter(translations, references),
    )


if __name__ == "__main__":
    app()
