"""Cards of trained models: measured facts as JSON."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_attnvariants.trained.names import CARD
from keras_attnvariants.utils.records import read_record


@dataclass(frozen=True)
class Data:
    """The corpus that a model was trained and tested on.

    Attributes:
        name: its name.
        attribution: whom to credit, and where the data comes from.
        files: sha256 of each file by its name.
        pairs: number of pairs in each split.
        mean_words: mean number of words of a training source.
        most_words: number of words that 99 % of the training sources do not exceed.
        test_sources_in_training: number of test sources that are training sources.
        test_targets_in_training: the same for targets.
    """

    name: str
    attribution: str
    files: dict[str, str]
    pairs: dict[str, int]
    mean_words: float
    most_words: int
    test_sources_in_training: int
    test_targets_in_training: int


@dataclass(frozen=True)
class Training:
    """The run that a model comes from.

    Attributes:
        command: words of the command that repeats the training.
        seed: seed of weights, dropout and the order of the batches.
        updates: number of updates.
        target_tokens: target tokens seen in all epochs.
        seconds: duration, including validations.
        precision: dtype policy of the training.
        weights: `"averaged"` or `"best"`, whichever validated better.
        machine: properties of the machine; empty if the run did not record them.
    """

    command: list[str]
    seed: int
    updates: int
    target_tokens: int
    seconds: int
    precision: str
    weights: str
    machine: dict[str, str]


@dataclass(frozen=True)
class Score:
    """A score on the test set, of the packed model and of the same one in float32.

    Attributes:
        name: sacreBLEU's name of the metric.
        signature: how sacreBLEU computed it.
        packed, float32: the score of the packed model, and in float32.
        packed_interval, float32_interval: half the width of the 95 % interval of each,
            by sacreBLEU's bootstrap.
        p_value: p-value of the difference between the two, by its paired bootstrap.
    """

    name: str
    signature: str
    packed: float
    packed_interval: float
    float32: float
    float32_interval: float
    p_value: float


@dataclass(frozen=True)
class Speed:
    """Speed and memory of `kav translate` with the packed model, in one thread.

    Attributes:
        sentences_per_second: test sentences per second of processor time.
        tokens_per_second: tokens of their translations, likewise.
        start_seconds: seconds of processor time until the examples are translated,
            most of which are for the start of Python and TensorFlow.
        peak_megabytes: peak memory of the process, including libraries.
        machine: properties of the machine and the software.
    """

    sentences_per_second: float
    tokens_per_second: float
    start_seconds: float
    peak_megabytes: int
    machine: dict[str, str]


@dataclass(frozen=True)
class Example:
    """One of our sentences, translated by the model and by a person.

    Attributes:
        source, translation, reference: the texts.
        chrf: sacreBLEU's chrF of the translation.
    """

    source: str
    translation: str
    reference: str
    chrf: float


@dataclass(frozen=True)
class Card:
    """Facts and figures of a trained model.

    Attributes:
        name: name of the model, such as `"kav/base/tatoeba-en-de"`.
        source, target: codes of its languages.
        languages: their names by code.
        license: the terms of the data, which also hold for the model.
        bleu: BLEU of the packed model on the test set.
        preset: the preset that was trained.
        variant: its variant of attention.
        after: the published preset with the same architecture; empty if it is one.
        paper: the publication of the architecture.
        attention: classes of attention in the model.
        sizes: options of the preset.
        parameters: number of parameters.
        bytes: size of configuration, weights and tokenizer on disk.
        search: search settings, and the number of sentences per batch.
        limits: what the model is not for, a sentence or more each.
        data, training, scores, speed, examples: see their classes.
    """

    name: str
    source: str
    target: str
    languages: dict[str, str]
    license: str
    bleu: float
    preset: str
    variant: str
    after: str
    paper: str
    attention: list[str]
    sizes: dict[str, Any]
    parameters: int
    bytes: int
    search: dict[str, int | float]
    limits: list[str]
    data: Data
    training: Training
    scores: list[Score]
    speed: Speed
    examples: list[Example]


def card_of(folder: Path) -> Card:
    """The card in a model folder.

    Raises:
        DamagedFolderError: the folder has no readable card.
    """
    return read_record(folder / CARD, Card)
