"""The settings of a training run, and how they are written to its folder."""

import dataclasses
import json
from typing import Any

import keras

from keras_attnvariants.training.optimizers import Adam
from keras_attnvariants.training.optimizers import AveragingAdam
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run. `to_dict` gives a form that JSON can hold.

    Attributes:
        steps: number of updates of the whole run.
        learning_rate: a constant, or a schedule such as `NoamSchedule`.
        label_smoothing: `smoothing` of `LabelSmoothedCrossEntropy`.
        beta_1, beta_2, epsilon: of Adam.
        clipnorm: norm that the gradients are clipped to, all together.
        accumulate: number of batches whose gradients make an update, the very update of
            one batch with all their sentences. Everything else that counts in updates,
            such as the schedule, counts these.
        ema: momentum of an exponential moving average of the weights, say 0.999. The
            model is then validated, and saved as the best one, with averages in place
            of weights; the updates go on from the weights. `None` for none.
        alignment_weight: factor of a loss that trains attention to the source towards
            the alignments of the corpus, say 0.05; `None` for none. See
            `keras_attnvariants.training.guiding`.
        alignment_layer: the decoder layer, from 1, whose attention it is; `None` for
            the last but one of those with weights that are learned.
        alignment_head: the head, from 1; `None` for the mean of the heads.
        validate_every: length of a period, in updates; each ends with a validation.
        save_every: updates between two saved states within a period.
        log_every: updates between two lines of the log within a period.
        average_last: number of validated steps, the last ones, whose weights are
            averaged at the end.
        patience: periods without a better validation until training stops.
        bleu_tokenize: sacreBLEU's tokenizer for the validation BLEU.
        precision: Keras dtype policy that the model was built under, say
            `"mixed_bfloat16"`. It is checked, not set: a model's policy is fixed when
            it is built.
        jit_compile: compile the update with XLA. On CPUs it gains little, and with
            `"mixed_bfloat16"` it is slower than the plain graph.
        data: description of the training data (corpus, languages, seed,
            `batch_tokens`, …), so that a run is not resumed on other data by mistake.

    Raises:
        ValueError: a number is out of its range.

    Example:

    >>> config = TrainingConfig(steps=1000, learning_rate=3e-4)
    >>> TrainingConfig.from_dict(config.to_dict()) == config
    True
    """

    steps: int
    learning_rate: float | keras.optimizers.schedules.LearningRateSchedule
    label_smoothing: float = 0.0
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    clipnorm: float | None = None
    accumulate: int = 1
    ema: float | None = None
    alignment_weight: float | None = None
    alignment_layer: int | None = None
    alignment_head: int | None = None
    validate_every: int = 1000
    save_every: int = 500
    log_every: int = 100
    average_last: int = 5
    patience: int | None = None
    bleu_tokenize: str = "13a"
    precision: str = "float32"
    jit_compile: bool = False
    data: dict[str, Any] = dataclasses.field(default_factory=dict)

    # These decide how long to train and what to report. They do not change the
    # updates, so they may differ when a run is resumed.
    FREE_TO_CHANGE = ("steps", "log_every", "save_every", "average_last", "patience")

    def __post_init__(self) -> None:
        for name in ("steps", "validate_every", "save_every", "log_every"):
            check_integer(name, getattr(self, name))
        check_integer("average_last", self.average_last)
        check_integer("accumulate", self.accumulate)
        for name in ("patience", "alignment_layer", "alignment_head"):
            check_optional_integer(name, getattr(self, name))
        check_rate("label_smoothing", self.label_smoothing)
        if self.ema is not None:
            check_rate("ema", self.ema)
        for name in ("clipnorm", "alignment_weight"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if not callable(self.learning_rate):
            check_positive("learning_rate", self.learning_rate)

    def optimizer(self) -> keras.optimizers.Optimizer:
        """A new Adam optimizer with these settings."""
        settings = {
            "learning_rate": self.learning_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "global_clipnorm": self.clipnorm,
        }
        if self.ema is None:
            return Adam(**settings)
        return AveragingAdam(self.ema, **settings)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict that JSON can hold, with one key per field."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["learning_rate"] = keras.saving.serialize_keras_object(
            self.learning_rate
        )
        # Through JSON and back, so that a tuple equals the list it is read back as.
        return json.loads(json.dumps(values))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingConfig":
        """The settings that `to_dict` returned.

        Raises:
            ValueError: a key is no field; the message names the nearest field.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            check_known("TrainingConfig", key, known)
        rate = keras.saving.deserialize_keras_object(values["learning_rate"])
        return cls(**{**values, "learning_rate": rate})
