"""`kav train`: a preset on a corpus, into the folder of a run."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.callbacks import load_callbacks
from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.checks import checked
from keras_attnvariants.cli.differences import named_by_options
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.options import Data
from keras_attnvariants.cli.options import MaxInvalid
from keras_attnvariants.cli.options import Source
from keras_attnvariants.cli.options import Target
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate


class TrainingPrecision(StrEnum):
    """What a model is trained in."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "mixed_bfloat16"
    FLOAT16 = "mixed_float16"


class Subwords(StrEnum):
    """How a vocabulary is learned."""

    UNIGRAM = "unigram"
    BPE = "bpe"


def size(help: str, **options: Any) -> Any:
    """An option for a size of the model."""
    panel = "Size (default: the preset's)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


def setting(help: str, **options: Any) -> Any:
    """An option for how the model is trained."""
    panel = "Training (default: the preset's)"
    return typer.Option(help=help, show_default=False, rich_help_panel=panel, **options)


Run = Annotated[
    Path,
    typer.Option(
        help="Folder of the run. If it holds a run already, that run is continued.",
        show_default=False,
    ),
]
PresetName = Annotated[str, typer.Option(help="Which model; `kav presets` lists them.")]

VocabularySize = Annotated[
    int | None, size("Subwords of both languages together.", min=5)
]
SubwordsOption = Annotated[Subwords | None, size("How subwords are learned (unigram).")]
CharacterCoverage = Annotated[
    float | None,
    size("Share of characters that get a subword (1.0).", min=0.9, max=1.0),
]
Layers = Annotated[int | None, size("Encoder blocks, and decoder blocks.", min=1)]
Width = Annotated[int | None, size("Of embeddings and layers.", min=1)]
FeedForward = Annotated[int | None, size("Of feed-forward sub-layers.", min=1)]
Heads = Annotated[int | None, size("Of every attention layer.", min=1)]

Steps = Annotated[int | None, setting("Number of updates.", min=1)]
Minutes = Annotated[
    float | None,
    setting("End earlier, when the time is up.", callback=checked(check_positive)),
]
BatchTokens = Annotated[
    int | None, setting("Source and target positions of an update.", min=1)
]
LearningRate = Annotated[
    float | None,
    setting(
        "Highest rate (1e-3) of a linear rise and an inverse square-root decay.",
        callback=checked(check_positive),
    ),
]
WarmupSteps = Annotated[int | None, setting("Updates of that rise (1000).", min=1)]
Dropout = Annotated[
    float | None,
    setting("On embeddings and sub-layers.", callback=checked(check_rate)),
]
LabelSmoothing = Annotated[
    float | None,
    setting("Probability taken from the label.", callback=checked(check_rate)),
]

ClipNorm = Annotated[
    float | None,
    setting("Longest gradient; none by default.", callback=checked(check_positive)),
]
Patience = Annotated[
    int | None,
    setting("Stop after so many validations without a better one.", min=1),
]
AverageLast = Annotated[
    int | None, setting("Validated weights to keep, and to average.", min=1)
]
SaveEvery = Annotated[
    int | None, setting("Updates between two saved states (500).", min=1)
]
Callback = Annotated[
    list[str] | None,
    typer.Option(
        help="package.module:function that returns Keras callbacks. May be repeated.",
        show_default=False,
    ),
]

PrecisionOption = Annotated[
    TrainingPrecision,
    typer.Option("--precision", help="auto: the faster one on this machine."),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Of weights, dropout and the order of the batches.", min=0, max=2**32 - 1
    ),
]
ValidateEvery = Annotated[
    int, typer.Option(help="Updates between two validations.", min=1)
]
BleuSentences = Annotated[
    int | None,
    typer.Option(
        help="Number of validation sentences to translate in each validation. The "
        "best model is then that of highest BLEU instead of lowest loss. Default: 200 "
        "for information, when they take less than 5 % of the time.",
        min=0,
        show_default=False,
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        help="Number of validation sentences whose translations are shown.", min=0
    ),
]


def train(
    data: Data,
    source: Source,
    target: Target,
    run: Run,
    max_invalid: MaxInvalid = 0.01,
    preset: PresetName = "kav/hc-sa/bible",
    vocabulary_size: VocabularySize = None,
    subwords: SubwordsOption = None,
    character_coverage: CharacterCoverage = None,
    layers: Layers = None,
    width: Width = None,
    feed_forward: FeedForward = None,
    heads: Heads = None,
    steps: Steps = None,
    minutes: Minutes = None,
    batch_tokens: BatchTokens = None,
    learning_rate: LearningRate = None,
    warmup_steps: WarmupSteps = None,
    dropout: Dropout = None,
    label_smoothing: LabelSmoothing = None,
    clip_norm: ClipNorm = None,
    patience: Patience = None,
    average_last: AverageLast = None,
    save_every: SaveEvery = None,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    seed: Seed = 1,
    validate_every: ValidateEvery = 500,
    bleu_sentences: BleuSentences = None,
    samples: Samples = 2,
    callback: Callback = None,
) -> None:
    """Train a translation model on a parallel corpus.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    with clear_errors():
        check_output_folder("--run", run)
        import_tensorflow()
        settings = given(
            steps=steps,
            learning_rate=schedule(learning_rate, warmup_steps),
            label_smoothing=label_smoothing,
            clipnorm=clip_norm,
            patience=patience,
            average_last=average_last,
            save_every=save_every,
            validate_every=validate_every,
        )
        options = {
            "vocabulary_size": vocabulary_size,
            "subwords": vocabulary_options(subwords, character_coverage),
            "batch_tokens": batch_tokens,
            "sizes": model_sizes(layers, width, feed_forward, heads, dropout),
            "settings": settings,
            "precision": precision.value,
            "seed": seed,
            "bleu_sentences": bleu_sentences,
            "samples": samples,
            "callbacks": load_callbacks(callback or ()),
        }
        corpus = data, source, target, max_invalid
        train_and_say_what_is_next(corpus, preset, run, minutes, options)


def train_and_say_what_is_next(
    corpus: tuple[str, str, str, float],
    preset: str,
    run: Path,
    minutes: float | None,
    options: dict[str, Any],
) -> None:
    """Trains and says what can be done with the run."""
    import keras_attnvariants as kav

    data, source, target, max_invalid = corpus
    chosen = kav.presets.get(preset)
    chosen.check(options["vocabulary_size"], **options["sizes"])
    limit = None if minutes is None else kav.training.TimeLimit(minutes)
    loaded = kav.data.load_corpus(data, source, target, max_invalid=max_invalid)
    typer.echo(loaded.report)
    if limit is not None:
        options["callbacks"].insert(0, limit)
    with named_by_options():
        kav.training.train_preset(chosen, loaded, run, **options)
    here = f"--data {data} --source {source} --target {target}"
    typer.echo(
        f"Next: kav evaluate --model {run} {here}\n"
        f"      kav translate --model {run} 'A sentence.'"
    )


def schedule(learning_rate: float | None, warmup_steps: int | None) -> Any:
    """The schedule that the options describe; `None` for that of the preset."""
    if learning_rate is None and warmup_steps is None:
        return None
    from keras_attnvariants.training import NoamSchedule

    return NoamSchedule.from_peak(
        1e-3 if learning_rate is None else learning_rate,
        1000 if warmup_steps is None else warmup_steps,
    )


def model_sizes(
    layers: int | None,
    width: int | None,
    feed_forward: int | None,
    heads: int | None,
    dropout: float | None,
) -> dict[str, Any]:
    """The options of the model that were given, by the names of its arguments."""
    return given(
        num_layers=layers,
        hidden_dim=width,
        intermediate_dim=feed_forward,
        num_heads=heads,
        dropout=dropout,
    )


def vocabulary_options(
    subwords: Subwords | None, character_coverage: float | None
) -> dict[str, Any]:
    """The options of the vocabulary that were given."""
    return given(
        model_type=subwords and subwords.value, character_coverage=character_coverage
    )


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}
