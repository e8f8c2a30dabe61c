"""`kav train`: a preset on a corpus, into the folder of a run."""

import typer

from keras_attnvariants.cli.callbacks import load_callbacks
from keras_attnvariants.cli.checks import check_output_folder
from keras_attnvariants.cli.commands import command
from keras_attnvariants.cli.corpora_options import CorporaOptions
from keras_attnvariants.cli.device_options import DeviceOptions
from keras_attnvariants.cli.differences import named_by_options
from keras_attnvariants.cli.options import given
from keras_attnvariants.cli.train_options import BleuSentences
from keras_attnvariants.cli.train_options import Callback
from keras_attnvariants.cli.train_options import PrecisionOption
from keras_attnvariants.cli.train_options import PresetName
from keras_attnvariants.cli.train_options import Run
from keras_attnvariants.cli.train_options import Samples
from keras_attnvariants.cli.train_options import Seed
from keras_attnvariants.cli.train_options import SizeOptions
from keras_attnvariants.cli.train_options import SubwordOptions
from keras_attnvariants.cli.train_options import TrainingOptions
from keras_attnvariants.cli.train_options import TrainingPrecision
from keras_attnvariants.cli.train_options import ValidateEvery
from keras_attnvariants.cli.train_options import VocabularySize
from keras_attnvariants.utils.importing import import_tensorflow


@command
def train(
    *,
    corpora: CorporaOptions,
    run: Run,
    preset: PresetName = "kav/hc-sa/bible",
    vocabulary_size: VocabularySize = None,
    subwords: SubwordOptions,
    sizes: SizeOptions,
    training: TrainingOptions,
    precision: PrecisionOption = TrainingPrecision.AUTO,
    seed: Seed = 1,
    validate_every: ValidateEvery = 500,
    bleu_sentences: BleuSentences = None,
    samples: Samples = 2,
    callback: Callback = None,
    on: DeviceOptions,
) -> None:
    """Train a translation model on a parallel corpus, or on several.

    Learns a joint vocabulary, trains, validates, and writes everything into one
    folder. After an interruption, the same command continues where it stopped.

    [bold]Example:[/bold] kav train --data multi30k --source en --target de
    --run runs/multi30k --preset kav/hc-sa/multi30k
    """
    check_output_folder("--run", run)
    import_tensorflow()
    import keras_attnvariants as kav

    callbacks = load_callbacks(callback or ())
    training.check_guidance(is_aligned=any(corpora.alignments or ()))
    corpora.check()
    with named_by_options(), on.devices_to_use():
        chosen = kav.presets.get(preset)
        model = sizes.given() | given(dropout=training.dropout)
        chosen.check(vocabulary_size, **model)
        limits = training.limits()
        corpus = corpora.load()
        typer.echo(corpus.report)
        kav.training.train_preset(
            chosen,
            corpus,
            run,
            vocabulary_size=vocabulary_size,
            subwords=subwords.given(),
            batch_tokens=training.batch_tokens,
            sizes=model,
            settings=training.settings() | {"validate_every": validate_every},
            precision=precision.value,
            seed=seed,
            bleu_sentences=bleu_sentences,
            samples=samples,
            callbacks=[*limits, *callbacks],
        )
        typer.echo(
            f"Next: kav evaluate --model {run} {corpora.example}\n"
            f"      kav translate --model {run}{corpora.tag} 'A sentence.'"
        )
