"""The options of `kav train`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.checks import checked
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
    int | None, setting("Source and target positions of a batch.", min=1)
]
Accumulate = Annotated[
    int | None,
    setting("Batches whose gradients make an update together (1).", min=1),
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
Ema = Annotated[
    float | None,
    setting(
        "Momentum of a moving average of the weights, say 0.999, that validations and "
        "the best model have; none by default.",
        callback=checked(check_rate),
    ),
]
AlignmentWeight = Annotated[
    float | None,
    setting("Factor of the loss of --alignments.", callback=checked(check_positive)),
]
AlignmentLayer = Annotated[
    int | None,
    setting(
        "Decoder layer whose attention to the source follows --alignments, from 1; by "
        "default the last but one that can.",
        min=1,
    ),
]
AlignmentHead = Annotated[
    int | None,
    setting("Head that follows them, from 1; by default the mean of all.", min=1),
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
