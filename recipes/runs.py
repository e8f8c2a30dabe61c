"""From a corpus to a trained model in the folder of a run."""

import json
import math
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from limit import TimeLimit
from limit import train_within

from keras_attnvariants import Tokenizer
from keras_attnvariants import Translator
from keras_attnvariants.data import Corpus
from keras_attnvariants.data import TokenizedCorpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.training import TrainingConfig
from keras_attnvariants.training import TrainingResult


def train_run(
    preset: Preset,
    corpus: Corpus,
    run: Path,
    *,
    vocabulary_size: int | None = None,
    batch_tokens: int | None = None,
    sizes: dict[str, Any],
    settings: dict[str, Any],
    precision: str = "auto",
    seed: int = 1,
    limit: TimeLimit | None = None,
    bleu_sentences: int = 0,
    verbose: int | str = "auto",
) -> TrainingResult:
    """Trains a preset on a corpus, or goes on with the run that the folder holds.

    Args:
        preset: what to train, and how.
        corpus: has a split "train", and "validation" if there is to be one.
        run: folder of the run.
        vocabulary_size: of the joint vocabulary, which is learned first; `None` for
            that of the preset.
        batch_tokens: source and target positions of one update; `None` for those of
            the preset.
        sizes: replace those of the preset; see `Preset.build`. A `length_ratio` that
            the model needs is that of the corpus if it is not among them.
        settings: replace those of the preset; see `TrainingConfig`.
        precision: dtype policy, or `"auto"` for the faster one.
        seed: of weights, dropout and the order of the batches.
        limit: when to end early.
        bleu_sentences: how many sentences each validation translates.
        verbose: of `fit`.
    """
    vocabulary_size = vocabulary_size or preset.options["vocabulary_size"]
    tokenizer = tokenizer_of(run, corpus, vocabulary_size)
    tokens = TokenizedCorpus(corpus, tokenizer)
    if "length_ratio" in preset.options:
        sizes = {"length_ratio": tokens.length_ratio(), **sizes}
    batch_tokens = (
        preset.training.batch_tokens if batch_tokens is None else batch_tokens
    )
    precision = precision_of(run) if precision == "auto" else precision
    keras.utils.set_random_seed(seed)
    model = preset.build(tokenizer.vocabulary_size, dtype=precision, **sizes)
    config = TrainingConfig(
        precision=precision,
        data={"corpus": corpus.folder.name, "batch_tokens": batch_tokens, "seed": seed},
        **{**preset_settings(preset), **settings},
    )
    options: dict[str, Any] = {"verbose": verbose}
    if "validation" in corpus.splits:
        options["validation_data"] = tokens.validation_dataset(batch_tokens)
        if bleu_sentences:
            texts = corpus.read_lines("validation")
            options["validation_texts"] = tuple(t[:bleu_sentences] for t in texts)
            greedy = Translator(model, tokenizer, beam_size=1, xla=False)
            options["translate"] = greedy.translate

    def batches_from(step: int) -> tf.data.Dataset:
        return tokens.training_dataset(batch_tokens, seed, start_step=step)

    return train_within(
        limit, model, tokenizer, batches_from, run, config=config, **options
    )


def tokenizer_of(run: Path, corpus: Corpus, vocabulary_size: int) -> Tokenizer:
    """The tokenizer of a run, learned from the training split if it is new."""
    path = run / "tokenizer.model"
    if not path.is_file():
        return Tokenizer.train(corpus.files("train"), vocabulary_size)
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocabulary_size != vocabulary_size:
        raise ValueError(
            f"The run in {run} has a vocabulary of {tokenizer.vocabulary_size}: keep "
            f"to it, or choose another folder. Received: {vocabulary_size}"
        )
    return tokenizer


def preset_settings(preset: Preset) -> dict[str, Any]:
    """How a preset is trained, as arguments of `TrainingConfig`."""
    training = preset.training
    return {
        "steps": training.steps,
        "learning_rate": keras.optimizers.schedules.deserialize(
            dict(training.schedule)
        ),
        "label_smoothing": training.label_smoothing,
        "beta_1": training.beta_1,
        "beta_2": training.beta_2,
        "epsilon": training.epsilon,
        "average_last": training.averaged_checkpoints,
    }


def precision_of(run: Path) -> str:
    """The precision that a run has, or the one that is faster on this machine."""
    config = run / "config.json"
    if config.is_file():
        return json.loads(config.read_text("utf-8"))["training"]["precision"]
    # Only some processors multiply bfloat16 matrices in hardware.
    seconds = product_seconds("bfloat16", "float32")
    is_faster = seconds["bfloat16"] < 0.8 * seconds["float32"]
    return "mixed_bfloat16" if is_faster else "float32"


def product_seconds(*dtypes: str, size: int = 512, rounds: int = 100) -> dict:
    """The shortest time of a product of two square matrices, by dtype.

    The dtypes take turns, many of them, so that other work on the machine cannot
    hit one alone.
    """
    matrices = {dtype: tf.ones((size, size), dtype) for dtype in dtypes}
    seconds = dict.fromkeys(dtypes, math.inf)
    for _ in range(rounds):
        for dtype, matrix in matrices.items():
            start = time.perf_counter()
            tf.matmul(matrix, matrix)[0, 0].numpy()
            seconds[dtype] = min(seconds[dtype], time.perf_counter() - start)
    return seconds
