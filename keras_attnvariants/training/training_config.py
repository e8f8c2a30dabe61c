"""The settings of a training: given, or taken from a preset, a corpus and a machine."""

import dataclasses
import hashlib
import json
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_attnvariants import backend
from keras_attnvariants.backend import faster_floats
from keras_attnvariants.data import Corpus
from keras_attnvariants.presets import Preset
from keras_attnvariants.training.optimizers import Adam
from keras_attnvariants.training.optimizers import NoamSchedule
from keras_attnvariants.utils.caches import remembered_entry
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.checks import check_rate

# Options of `Tokenizer.train` that a run takes, with their defaults.
SUBWORDS = {"model_type": "unigram", "character_coverage": 1.0}
# The weight of the loss that follows the alignments of a corpus (Garg et al. 2019).
ALIGNMENT_WEIGHT = 0.05
# Compiling the programs of one more shape takes as long as a dozen updates on a CPU,
# and hundreds on a GPU.
BATCHES_PER_PROGRAM = 64


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run. `to_dict` gives a form that JSON can hold.

    Attributes:
        steps: number of updates of the whole run.
        learning_rate: a constant, or a schedule such as `NoamSchedule`.
        label_smoothing: `smoothing` of `LabelSmoothedCrossEntropy`.
        beta_1, beta_2, epsilon: options of Adam.
        clipnorm: global norm that the gradients are clipped to.
        accumulate: number of batches per update, which equals the update of one batch
            with all their sentences. Everything that counts updates, such as the
            schedule, counts these.
        ema: momentum of an exponential moving average of the weights, say 0.999. The
            model is then validated, and saved as the best one, with averages in place
            of weights; the updates continue from the weights. `None` for none.
        alignment_weight: factor of a loss that trains attention to the source towards
            the alignments of the corpus, say 0.05; `None` for none. See
            `keras_attnvariants.training.guided_alignment`.
        ctc_weight: factor of a CTC loss of the encoder's outputs, say 0.3, which helps
            attention to speech to align; `None` for none. See
            `keras_attnvariants.models.speech.ctc_loss`.
        validate_every: length of a period, in updates; each ends with a validation.
        save_every: updates between two saved states within a period.
        log_every: updates between two lines of the log within a period.
        average_last: number of last validated steps whose weights are averaged at the
            end.
        patience: periods without a better validation until training stops.
        bleu_tokenize: sacreBLEU's tokenizer for the validation BLEU that
            `train_preset` adds; a `ValidationScore` of your own has its own.
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
    >>> config.to_dict()["learning_rate"]
    0.0003
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
    ctc_weight: float | None = None
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
        counts = "steps", "validate_every", "save_every", "log_every", "average_last"
        for name in (*counts, "accumulate"):
            check_integer(name, getattr(self, name))
        check_optional_integer("patience", self.patience)
        for name in ("label_smoothing", "beta_1", "beta_2"):
            check_rate(name, getattr(self, name))
        if self.ema is not None:
            check_rate("ema", self.ema)
        check_positive("epsilon", self.epsilon)
        for name in ("clipnorm", "alignment_weight", "ctc_weight"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if not callable(self.learning_rate):
            check_positive("learning_rate", self.learning_rate)

    @property
    def uses_xla(self) -> bool:
        """Whether XLA compiles the update, as it always does on JAX."""
        return self.jit_compile or backend.name() == "jax"

    @property
    def batches_per_shape(self) -> int:
        """Wanted number of batches of a shape in an epoch; see `TokenizedCorpus`."""
        return BATCHES_PER_PROGRAM if self.uses_xla else 0

    def optimizer(self) -> keras.optimizers.Optimizer:
        """A new Adam optimizer with these settings."""
        return Adam(
            learning_rate=self.learning_rate,
            beta_1=self.beta_1,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
            global_clipnorm=self.clipnorm,
            use_ema=self.ema is not None,
            ema_momentum=self.ema or 0.0,
        )

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict that JSON can hold, with one key per field."""
        rate = keras.saving.serialize_keras_object(self.learning_rate)
        values = {**vars(self), "learning_rate": rate}
        # Through JSON and back, so that a tuple equals the list it is read back as.
        return json.loads(json.dumps(values))


def preset_settings(preset: Preset, corpus: Corpus | None = None) -> dict[str, Any]:
    """Arguments of `TrainingConfig` that a preset, and the corpus, ask for."""
    training = preset.training
    names = "steps", "label_smoothing", "ctc_weight", "beta_1", "beta_2", "epsilon"
    settings = {name: getattr(training, name) for name in names}
    settings["average_last"] = training.averaged_checkpoints
    schedule = dict(training.schedule)
    settings["learning_rate"] = keras.optimizers.schedules.deserialize(schedule)
    if corpus is not None and corpus.alignments is not None:
        settings["alignment_weight"] = ALIGNMENT_WEIGHT
    return settings


def with_schedule(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `TrainingConfig`, with a schedule from a highest rate and a warm-up.

    Args:
        settings: the fields. A number as `learning_rate` (0.001 by default) and
            `warmup_steps` (1000), either of which may be missing, become a
            `NoamSchedule`.
    """
    found = dict(settings)
    if found.keys() & {"learning_rate", "warmup_steps"}:
        peak, rise = found.pop("learning_rate", 1e-3), found.pop("warmup_steps", 1000)
        found["learning_rate"] = NoamSchedule.from_peak(peak, rise)
    return found


def config_for_corpus(
    config: TrainingConfig, preset: Preset, tokens: Any, given: Collection[str]
) -> TrainingConfig:
    """Converts a preset's sentence pairs and epochs to positions and updates.

    Args:
        config: the settings, with estimates for the corpus of the paper.
        preset: the preset, with `batch_sentences` and `epochs` or without.
        tokens: the corpus, a `TokenizedCorpus`.
        given: names of settings that the caller chose, such as "batch_tokens".
    """
    data, steps, training = dict(config.data), config.steps, preset.training
    if training.batch_sentences and "batch_tokens" not in given:
        source, target = tokens.split("train")
        # The target has BOS or EOS besides its tokens.
        mean = (len(source.ids) + len(target.ids)) / len(source.lengths) + 1
        data["batch_tokens"] = round(training.batch_sentences * mean)
    if training.epochs and "steps" not in given:
        plan = tokens.plan("train", data["batch_tokens"], data["seed"])
        steps = -(-training.epochs * plan.num_batches // config.accumulate)
    return dataclasses.replace(config, data=data, steps=steps)


def describe_data(
    preset: Preset, corpus: Corpus, subwords: Mapping[str, Any]
) -> dict[str, Any]:
    """The data of a run, so that it is not resumed on other data.

    Sentences count by content, not by file name; test sets do not count.

    Args:
        preset: preset whose name is recorded.
        corpus: corpus whose training and validation files are recorded.
        subwords: options of the vocabulary; those other than the defaults are recorded.
    """
    data: dict[str, Any] = {"preset": preset.name}
    for split in ("train", "validation"):
        if split == "train" or split in corpus.splits:
            data[f"{split}_sentences"] = content_sha256(corpus.files(split))
    if corpus.mixture is not None:
        data |= corpus.mixture.to_dict()
    if corpus.tags:
        data["source_tag"] = list(corpus.tags)
    if corpus.revision:
        data["revision"] = corpus.revision
    if corpus.alignments is not None:
        data["alignments"] = content_sha256([corpus.alignments])
    return data | {k: v for k, v in subwords.items() if v != SUBWORDS.get(k)}


def content_sha256(files: Iterable[Path]) -> str:
    """Digest of the contents of some files, in their order."""
    digests = hashlib.sha256()
    for path in files:
        digests.update(bytes.fromhex(remembered_entry(path)["sha256"]))
    return digests.hexdigest()


def faster_precision() -> str:
    """`"mixed_bfloat16"` where it is faster, otherwise `"float32"`.

    This is measured, which takes less than half a second.
    """
    return "float32" if faster_floats() == "float32" else "mixed_bfloat16"
