"""Train a translation model on a parallel corpus."""

from pathlib import Path
from typing import Annotated
from typing import Any

import typer
from shared import Data
from shared import Source
from shared import Target
from shared import clear_errors
from shared import new_app

import keras_attnvariants as kav

app = new_app()


def size(help: str) -> Any:
    """An option for a size of the model."""
    return typer.Option(help=help, rich_help_panel="Size (default: the preset's)")


def rate(help: str) -> Any:
    """An option for the way it is trained."""
    return typer.Option(help=help, rich_help_panel="Training (default: the preset's)")


@app.command()
def main(
    data: Data,
    source: Source,
    target: Target,
    run: Annotated[
        Path,
        typer.Option(
            help="Folder of the run. If it holds one already, that run goes on.",
            show_default=False,
        ),
    ],
    preset: Annotated[
        str, typer.Option(help="Which model; kav.presets.list() shows them all.")
    ] = "kav/hc-sa/bible",
    vocabulary_size: Annotated[
        int | None, size("Subwords of both languages together.")
    ] = None,
    layers: Annotated[int | None, size("Encoder blocks, and decoder blocks.")] = None,
    width: Annotated[int | None, size("Of embeddings and layers.")] = None,
    feed_forward: Annotated[int | None, size("Of feed-forward sub-layers.")] = None,
    heads: Annotated[int | None, size("Of every attention layer.")] = None,
    steps: Annotated[int | None, rate("Number of updates.")] = None,
    minutes: Annotated[float | None, rate("End earlier, when time is up.")] = None,
    batch_tokens: Annotated[
        int | None, rate("Source and target positions of an update.")
    ] = None,
    learning_rate: Annotated[
        float | None,
        rate("Highest rate, with linear rise and inverse square-root fall, or 1e-3."),
    ] = None,
    warmup_steps: Annotated[int | None, rate("Updates of that rise, or 1000.")] = None,
    dropout: Annotated[float | None, rate("On embeddings and sub-layers.")] = None,
    label_smoothing: Annotated[float | None, rate("Mass taken from labels.")] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="float32, mixed_bfloat16, or auto: whichever is faster here."
        ),
    ] = "auto",
    seed: Annotated[
        int, typer.Option(help="Of weights, dropout and the order of the batches.")
    ] = 1,
    validate_every: Annotated[
        int, typer.Option(help="Updates between two validations.")
    ] = 500,
    bleu_sentences: Annotated[
        int,
        typer.Option(
            help="Translate as many of the validation sentences each time, and keep "
            "the model of the best BLEU instead of the lowest loss."
        ),
    ] = 0,
) -> None:
    """Train a translation model on a parallel corpus.

    Learns a joint vocabulary, trains, validates and writes everything into one folder.
    After an interruption the same command goes on where it stopped.

    [bold]Example:[/bold] train.py --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    sizes = {
        "num_layers": layers,
        "hidden_dim": width,
        "intermediate_dim": feed_forward,
        "num_heads": heads,
        "dropout": dropout,
    }
    settings = {
        "steps": steps,
        "label_smoothing": label_smoothing,
        "validate_every": validate_every,
    }
    with clear_errors():
        from limit import TimeLimit
        from runs import train_run

        found = kav.presets.get(preset)
        if (learning_rate, warmup_steps) != (None, None):
            settings["learning_rate"] = kav.training.NoamSchedule.from_peak(
                1e-3 if learning_rate is None else learning_rate,
                1000 if warmup_steps is None else warmup_steps,
            )
        sizes, settings = (
            {name: value for name, value in options.items() if value is not None}
            for options in (sizes, settings)
        )
        corpus = kav.data.load_corpus(data, source, target)
        typer.echo(corpus.report)
        train_run(
            found,
            corpus,
            run,
            sizes=sizes,
            settings=settings,
            vocabulary_size=vocabulary_size,
            batch_tokens=batch_tokens,
            precision=precision,
            seed=seed,
            limit=TimeLimit(minutes) if minutes is not None else None,
            bleu_sentences=bleu_sentences,
        )
        here = f"--data {data} --source {source} --target {target}"
        typer.echo(
            f"Next: evaluate.py --model {run} {here}\n"
            f"      translate.py --model {run} 'A sentence.'"
        )


if __name__ == "__main__":
    app()
