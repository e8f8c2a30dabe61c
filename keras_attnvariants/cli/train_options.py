"""The options of `kav train`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.options import checked
from keras_attnvariants.cli.options import given
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate

if TYPE_CHECKING:
    from keras_attnvariants.training import NoamSchedule
    from keras_attnvariants.training import TimeLimit


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
    return typer.Option(help=help, rich_help_panel=panel, **options)


def setting(help: str, **options: Any) -> Any:
    """An option for how the model is trained."""
    panel = "Training (default: the preset's)"
    return typer.Option(help=help, rich_help_panel=panel, **options)


Run = Annotated[
    Path,
    typer.Option(
        help="Folder of the run. If it holds a run already, that run is continued."
    ),
]
PresetName = Annotated[str, typer.Option(help="Which model; `kav presets` lists them.")]
VocabularySize = Annotated[
    int | None, size("Subwords of both languages together.", min=5)
]
Patience = Annotated[
    int | None,
    setting("Stop after so many validations without a better one.", min=1),
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
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        help="Number of validation sentences whose translations are shown.", min=0
    ),
]
Callback = Annotated[
    list[str] | None,
    typer.Option(
        help="package.module:function that returns Keras callbacks. May be repeated."
    ),
]


@dataclass(frozen=True, kw_only=True)
class SubwordOptions:
    """How subwords are learned."""

    subwords: Annotated[
        Subwords | None, size("How subwords are learned (unigram).")
    ] = None
    character_coverage: Annotated[
        float | None,
        size("Share of characters that get a subword (1.0).", min=0.9, max=1.0),
    ] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, by the names of the arguments of `Tokenizer.train`."""
        return given(
            model_type=self.subwords and self.subwords.value,
            character_coverage=self.character_coverage,
        )


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Sizes of the model, where they are not those of the preset."""

    layers: Annotated[
        int | None, size("Encoder blocks, and decoder blocks.", min=1)
    ] = None
    width: Annotated[int | None, size("Of embeddings and layers.", min=1)] = None
    feed_forward: Annotated[int | None, size("Of feed-forward sub-layers.", min=1)] = (
        None
    )
    heads: Annotated[int | None, size("Of every attention layer.", min=1)] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, by the names of the model's arguments."""
        return given(
            num_layers=self.layers,
            hidden_dim=self.width,
            intermediate_dim=self.feed_forward,
            num_heads=self.heads,
        )


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """Size and rate of updates, where they are not those of the preset."""

    batch_tokens: Annotated[
        int | None, setting("Source and target positions of a batch.", min=1)
    ] = None
    learning_rate: Annotated[
        float | None,
        setting(
            "Highest rate (1e-3) of a linear rise and an inverse square-root decay.",
            callback=checked(check_positive),
        ),
    ] = None
    warmup_steps: Annotated[
        int | None, setting("Updates of that rise (1000).", min=1)
    ] = None

    def of_updates(self) -> dict[str, Any]:
        """The size and rate of updates that were given, by their names."""
        return given(
            batch_tokens=self.batch_tokens,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
        )


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(UpdateOptions):
    """How the model is trained, where that is not as in the preset."""

    steps: Annotated[int | None, setting("Number of updates.", min=1)] = None
    minutes: Annotated[
        float | None,
        setting("End earlier, when the time is up.", callback=checked(check_positive)),
    ] = None
    accumulate: Annotated[
        int | None,
        setting("Batches whose gradients make an update together (1).", min=1),
    ] = None
    dropout: Annotated[
        float | None,
        setting("On embeddings and sub-layers.", callback=checked(check_rate)),
    ] = None
    label_smoothing: Annotated[
        float | None,
        setting("Probability taken from the label.", callback=checked(check_rate)),
    ] = None
    clip_norm: Annotated[
        float | None,
        setting("Longest gradient; none by default.", callback=checked(check_positive)),
    ] = None
    ema: Annotated[
        float | None,
        setting(
            "Momentum of a moving average of the weights, say 0.999, that validations "
            "and the best model have; none by default.",
            callback=checked(check_rate),
        ),
    ] = None
    alignment_weight: Annotated[
        float | None,
        setting(
            "Factor of the loss of --alignments.", callback=checked(check_positive)
        ),
    ] = None
    alignment_layer: Annotated[
        int | None,
        setting(
            "Decoder layer whose attention to the source follows --alignments, from 1; "
            "by default the last but one that can.",
            min=1,
        ),
    ] = None
    alignment_head: Annotated[
        int | None,
        setting("Head that follows them, from 1; by default the mean of all.", min=1),
    ] = None
    patience: Patience = None
    average_last: Annotated[
        int | None, setting("Validated weights to keep, and to average.", min=1)
    ] = None
    save_every: Annotated[
        int | None, setting("Updates between two saved states (500).", min=1)
    ] = None

    def settings(self) -> dict[str, Any]:
        """Those that were given, by the names of the fields of `TrainingConfig`."""
        return given(
            steps=self.steps,
            learning_rate=self.schedule(),
            label_smoothing=self.label_smoothing,
            clipnorm=self.clip_norm,
            accumulate=self.accumulate,
            ema=self.ema,
            **self.guidance(),
            patience=self.patience,
            average_last=self.average_last,
            save_every=self.save_every,
        )

    def guidance(self) -> dict[str, Any]:
        """Those about alignments that were given."""
        return given(
            alignment_weight=self.alignment_weight,
            alignment_layer=self.alignment_layer,
            alignment_head=self.alignment_head,
        )

    def check_guidance(self, is_aligned: bool) -> None:
        """Raises if there are settings for alignments but no alignments.

        Raises:
            ValueError: there are.
        """
        for name, value in self.guidance().items():
            if not is_aligned:
                raise ValueError(
                    f"--{name.replace('_', '-')} needs --alignments. Received: {value} "
                    "without"
                )

    def schedule(self) -> "NoamSchedule | None":
        """The schedule that the options describe; `None` for that of the preset."""
        from keras_attnvariants.training import NoamSchedule

        peak, steps = self.learning_rate, self.warmup_steps
        if peak is None and steps is None:
            return None
        return NoamSchedule.from_peak(
            1e-3 if peak is None else peak, 1000 if steps is None else steps
        )

    def limits(self) -> list["TimeLimit"]:
        """What ends the training when its time is up, if there is a time."""
        from keras_attnvariants.training import TimeLimit

        return [] if self.minutes is None else [TimeLimit(self.minutes)]
