"""`kav train`: a preset on a corpus, into the folder of a run."""

from pathlib import Path
from typing import Any

import typer

from keras_attnvariants.cli.callbacks import load_callbacks
from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.corpora_options import Alignments
from keras_attnvariants.cli.corpora_options import CorpusOptions
from keras_attnvariants.cli.corpora_options import Data
from keras_attnvariants.cli.corpora_options import DataTemperature
from keras_attnvariants.cli.corpora_options import DataWeight
from keras_attnvariants.cli.corpora_options import Source
from keras_attnvariants.cli.corpora_options import SourceTag
from keras_attnvariants.cli.corpora_options import Target
from keras_attnvariants.cli.differences import named_by_options
from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import import_tensorflow
from keras_attnvariants.cli.options import MaxInvalid
from keras_attnvariants.cli.train_options import Accumulate
from keras_attnvariants.cli.train_options import AlignmentHead
from keras_attnvariants.cli.train_options import AlignmentLayer
from keras_attnvariants.cli.train_options import AlignmentWeight
from keras_attnvariants.cli.train_options import AverageLast
from keras_attnvariants.cli.train_options import BatchTokens
from keras_attnvariants.cli.train_options import BleuSentences
from keras_attnvariants.cli.train_options import Callback
from keras_attnvariants.cli.train_options import CharacterCoverage
from keras_attnvariants.cli.train_options import ClipNorm
from keras_attnvariants.cli.train_options import Dropout
from keras_attnvariants.cli.train_options import Ema
from keras_attnvariants.cli.train_options import FeedForward
from keras_attnvariants.cli.train_options import Heads
from keras_attnvariants.cli.train_options import LabelSmoothing
from keras_attnvariants.cli.train_options import Layers
from keras_attnvariants.cli.train_options import LearningRate
from keras_attnvariants.cli.train_options import Minutes
from keras_attnvariants.cli.train_options import Patience
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import PresetName
from keras_attnvariants.cli.train_options import Run
from keras_attnvariants.cli.train_options import Samples
from keras_attnvariants.cli.train_options import SaveEvery
from keras_attnvariants.cli.train_options import Seed
from keras_attnvariants.cli.train_options import Steps
from keras_attnvariants.cli.train_options import Subwords
from keras_attnvariants.cli.train_options import SubwordsOption
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import ValidateEvery
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.cli.train_options import WarmupSteps
from keras_attnvariants.cli.train_options import Width


def train(
    data: Data,
    source: Source,
    target: Target,
    run: Run,
    max_invalid: MaxInvalid = 0.01,
    data_weight: DataWeight = None,
    data_temperature: DataTemperature = None,
    source_tag: SourceTag = None,
    alignments: Alignments = None,
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
    accumulate: Accumulate = None,
    learning_rate: LearningRate = None,
    warmup_steps: WarmupSteps = None,
    dropout: Dropout = None,
    label_smoothing: LabelSmoothing = None,
    clip_norm: ClipNorm = None,
    ema: Ema = None,
    alignment_weight: AlignmentWeight = None,
    alignment_layer: AlignmentLayer = None,
    alignment_head: AlignmentHead = None,
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
    """Train a translation model on a parallel corpus, or on several.

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
            accumulate=accumulate,
            ema=ema,
            alignment_weight=alignment_weight,
            alignment_layer=alignment_layer,
            alignment_head=alignment_head,
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
        corpus = CorpusOptions(
            data,
            source,
            target,
            max_invalid,
            data_weight,
            data_temperature,
            source_tag,
            alignments,
        )
        check_guidance(corpus, settings)
        train_and_say_what_is_next(corpus, preset, run, minutes, options)


def train_and_say_what_is_next(
    corpus: CorpusOptions,
    preset: str,
    run: Path,
    minutes: float | None,
    options: dict[str, Any],
) -> None:
    """Trains and says what can be done with the run."""
    import keras_attnvariants as kav

    corpus.check()
    chosen = kav.presets.get(preset)
    chosen.check(options["vocabulary_size"], **options["sizes"])
    limit = None if minutes is None else kav.training.TimeLimit(minutes)
    loaded = corpus.load()
    typer.echo(loaded.report)
    if limit is not None:
        options["callbacks"].insert(0, limit)
    with named_by_options():
        kav.training.train_preset(chosen, loaded, run, **options)
    typer.echo(
        f"Next: kav evaluate --model {run} {corpus.example}\n"
        f"      kav translate --model {run}{corpus.tag} 'A sentence.'"
    )


def check_guidance(corpus: CorpusOptions, settings: dict[str, Any]) -> None:
    """Raises `ValueError` if there are settings for alignments but no alignments."""
    for name in ("alignment_weight", "alignment_layer", "alignment_head"):
        if name in settings and not any(corpus.alignments or ()):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{option} needs --alignments. Received: {settings[name]} without"
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
