"""A preset and a space as a model builder for keras-tuner's own tuners."""

from typing import Any

import keras
import keras_tuner

from keras_attnvariants.presets import Preset
from keras_attnvariants.tuning.space import SearchSpace


class PresetHyperModel(keras_tuner.HyperModel):
    """Builds the models of a space, for use with tuners other than `RunTuner`.

    `hypermodel.space.hyperparameters(preset)` is the whole space; give it to the tuner
    as `hyperparameters`, so that it is declared before the search starts.

    Args:
        preset: what is built where the space says nothing else.
        space: what varies; its `training` part is no part of the model.
        vocabulary_size: of the joint vocabulary; `None` for the preset's.
    """

    def __init__(
        self, preset: Preset, space: SearchSpace, vocabulary_size: int | None = None
    ) -> None:
        super().__init__()
        self.preset = preset
        self.space = space
        self.vocabulary_size = vocabulary_size

    def declare_hyperparameters(self, hp: Any) -> None:
        """Add all dimensions."""
        hp.merge(self.space.hyperparameters(self.preset))

    def build(self, hp: Any) -> keras.Model:
        """The model of a point, not compiled."""
        arguments = self.space.arguments(self.preset, hp.values)
        return self.preset.build(self.vocabulary_size, **arguments.sizes)
