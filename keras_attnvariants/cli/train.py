"""`kav train`: a preset on a corpus, into the folder of a run."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.options import Data
from keras_attnvariants.cli.options import Source
from keras_attnvariants.cli.options import Target


class TrainingPrecision(StrEnum):
    """What a model is trained in."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "mixed_bfloat16"
    FLOAT16 = "mixed_float16"


def size(help: str, **options: Any) -> Any:
    """An option for a size of the model."""
    panel = "Size (default: the preset's)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


def setting(help: str, **options: Any) -> Any:
    """An option for how the model is trained."""
    panel = "Training (default: the preset's)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


def train(
    data: Data,
    source: Source,
    target: Target,
    run: Annotated[
        Path,
        typer.Option(
            help="Folder of the run. If it holds a run already, that run is continued.",
            show_default=False,
        ),
    ],
    preset: Annotated[
        str, typer.Option(help="Which model; `kav presets` lists them.")
    ] = "kav/hc-sa/bible",
    vocabulary_size: Annotated[
        int | None, size("Subwords of both languages together.", min=1)
    ] = None,
    layers: Annotated[
        int | None, size("Encoder blocks, and decoder blocks.", min=1)
    ] = None,
    width: Annotated[int | None, size("Of embeddings and layers.", min=1)] = None,
    feed_forward: Annotated[
        int | None, size("Of feed-forward sub-layers.", min=1)
    ] = None,
    heads: Annotated[int | None, size("Of every attention layer.", min=1)] = None,
    steps: Annotated[int | None, setting("Number of updates.", min=1)] = None,
    minutes: Annotated[
        float | None, setting("End earlier, when the time is up.")
    ] = None,
    batch_tokens: Annotated[
        int | None, setting("Source and target positions of an update.", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None,
        setting(
            "Highest rate (default 1e-3) of a linear rise and an inverse square-root "
            "decay."
        ),
    ] = None,
    warmup_steps: Annotated[
        int | None, setting("Updates of that rise (default 1000).", min=1)
    ] = None,
    dropout: Annotated[float | None, setting("On embeddings and sub-layers.")] = None,
    label_smoothing: Annotated[
        float | None, setting("Probability taken from the label.")
    ] = None,
    precision: Annotated[
        TrainingPrecision, typer.Option(help="auto: the faster one on this machine.")
    ] = TrainingPrecision.AUTO,
    seed: Annotated[
        int, typer.Option(help="Of weights, dropout and the order of the batches.")
    ] = 1,
    validate_every: Annotated[
        int, typer.Option(help="Updates between two validations.", min=1)
    ] = 500,
    bleu_sentences: Annotated[
        int,
        typer.Option(
            help="Number of validation sentences to translate in each validation. The "
            "best model is then that of highest BLEU instead of lowest loss.",
            min=0,
        ),
    ] = 0,
) -> None:
    """Train a translation model on a parallel corpus.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
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
        import_tensorflow()
        import keras_attnvariants as kav

        found = kav.presets.get(preset)
        limit = None if minutes is None else kav.training.TimeLimit(minutes)
        if (learning_rate, warmup_steps) != (None, None):
            settings["learning_rate"] = kav.training.NoamSchedule.from_peak(
                1e-3 if learning_rate is None else learning_rate,
                1000 if warmup_steps is None else warmup_steps,
            )
        corpus = kav.data.load_corpus(data, source, target)
        typer.echo(corpus.report)
        with kav.training.ProgressBar(steps or found.training.steps, limit) as bar:
            kav.training.train_preset(
                found,
                corpus,
                run,
                vocabulary_size=vocabulary_size,
                batch_tokens=batch_tokens,
                sizes=given(sizes),
                settings=given(settings),
                precision=precision.value,
                seed=seed,
                bleu_sentences=bleu_sentences,
                callbacks=[bar] if limit is None else [limit, bar],
                verbose=0,
            )
        here = f"--data {data} --source {source} --target {target}"
        typer.echo(
            f"Next: kav evaluate --model {run} {here}\n"
            f"      kav translate --model {run} 'A sentence.'"
        )


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}
