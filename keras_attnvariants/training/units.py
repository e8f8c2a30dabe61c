"""What papers count in sentence pairs and epochs, in tokens and updates."""

import dataclasses
from typing import Any

from keras_attnvariants.presets import Preset
from keras_attnvariants.training.config import TrainingConfig


def on_corpus(
    config: TrainingConfig,
    preset: Preset,
    tokens: Any,
    batch_is_given: bool,
    steps_are_given: bool,
) -> TrainingConfig:
    """Settings with what a preset counts in pairs and epochs, counted on a corpus.

    Args:
        config: the settings, with estimates for the corpus of the paper.
        preset: the preset, with `batch_sentences` and `epochs` or without.
        tokens: the corpus, a `TokenizedCorpus`.
        batch_is_given, steps_are_given: whether the caller chose them.
    """
    data, steps = dict(config.data), config.steps
    pairs, epochs = preset.training.batch_sentences, preset.training.epochs
    if pairs and not batch_is_given:
        source, target = tokens.split("train")
        # The target has BOS or EOS besides its tokens.
        mean = (len(source.ids) + len(target.ids)) / len(source.lengths) + 1
        data["batch_tokens"] = round(pairs * mean)
    if epochs and not steps_are_given:
        plan = tokens.plan("train", data["batch_tokens"], data["seed"])
        steps = -(-epochs * plan.num_batches // config.accumulate)
    return dataclasses.replace(config, data=data, steps=steps)
