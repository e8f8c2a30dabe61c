"""A named configuration: how to build it, how it was trained, what it scored."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import keras

from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.counting import count_parameters


@dataclass(frozen=True)
class Training:
    """How a configuration is trained and evaluated; `dataclasses.asdict` is JSON-able.

    Attributes:
        schedule: the learning rate, as `keras.optimizers.schedules.deserialize`
            takes it.
        batch_tokens: source and target tokens of one update together.
        steps: number of updates.
        label_smoothing: mass taken from the label.
        beta_1, beta_2, epsilon: of Adam.
        averaged_checkpoints: how many of the last ones make the final weights.
        beam_size: hypotheses kept per sentence.
        length_penalty: exponent of the GNMT length normalisation.
        extra_length: a translation may be that many tokens longer than its source.
        vocabulary: how words are cut into the model's tokens.
        metric: what the published figures are, as precisely as is known.
        batch_sentences: pairs of one update, where the paper counts those; what
            `batch_tokens` says is then about as much.
        epochs: passes over the data, where the paper counts those; what `steps` says
            is then about as many.
    """

    schedule: Mapping[str, Any]
    batch_tokens: int
    steps: int
    label_smoothing: float
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    averaged_checkpoints: int = 1
    beam_size: int = 4
    length_penalty: float = 0.6
    extra_length: int = 50
    vocabulary: str = ""
    metric: str = ""
    batch_sentences: int | None = None
    epochs: int | None = None


@dataclass(frozen=True)
class Published:
    """What the paper reports.

    Attributes:
        bleu: by direction, such as `"en-de"`.
        sentences_per_second: speed of translation, on the paper's GPU.
        tokens_per_batch: largest training batch that fits into the paper's GPU.
        ter: translation edit rate by direction; less is better.
        dev_bleu, dev_ter: the same on the development set, where the paper reports
            both sets or this one only.
        rouge: F1 of summaries by measure, such as `"rouge-1"`.
        parameters: number of parameters as the paper prints it, in whole millions.
        training_time: of an epoch, in epochs of the paper's baseline.
        loss: cross-entropy per token, in nats.
        perplexity: its exponential.
    """

    bleu: Mapping[str, float] = field(default_factory=dict)
    sentences_per_second: float | None = None
    tokens_per_batch: int | None = None
    ter: Mapping[str, float] = field(default_factory=dict)
    dev_bleu: Mapping[str, float] = field(default_factory=dict)
    dev_ter: Mapping[str, float] = field(default_factory=dict)
    rouge: Mapping[str, float] = field(default_factory=dict)
    parameters: int | None = None
    training_time: float | None = None
    loss: float | None = None
    perplexity: float | None = None


@dataclass(frozen=True)
class Preset:
    """One configuration of the zoo.

    Attributes:
        name: `family/variant/data`.
        paper: the publication, or a description of our own.
        architecture: maps `options` to the arguments of `model`, in the form of its
            `get_config`.
        options: sizes and whatever else the architecture leaves open, with the
            values of the publication. `build` takes others.
        training: how it was trained.
        published: what it scored; empty where nothing was published.
        notes: what else a reader of the figures should know.
        model: the class of the model.
        count: the number of parameters, as a function of the model's arguments.

    Example:

    >>> from keras_attnvariants import presets
    >>> preset = presets.get("you2020/sh-x/iwslt16")
    >>> model = preset.build(vocabulary_size=100, num_layers=2, hidden_dim=16)
    >>> [block.cross_attention is None for block in model.decoder_blocks]
    [True, False]
    """

    name: str
    paper: str
    architecture: Callable[..., dict[str, Any]]
    options: Mapping[str, Any]
    training: Training
    published: Published = Published()
    notes: str = ""
    model: type[keras.Model] = Transformer
    count: Callable[[Mapping[str, Any]], int] = count_parameters

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of `model`, JSON-able, in the form of its `get_config`."""
        return self.architecture(**self.options)

    @property
    def parameters(self) -> int:
        """Number of parameters; nothing is allocated to count them."""
        return self.count(self.config)

    def build(
        self,
        vocabulary_size: int | None = None,
        dtype: Any = None,
        **overrides: Any,
    ) -> keras.Model:
        """A new model of this configuration, with random weights.

        Args:
            vocabulary_size: number of tokens of a joint vocabulary; `None` for what
                the publication has, be it one vocabulary or two.
            dtype: dtype policy of the model; `None` for Keras' current one.
            **overrides: other values for `options` (what depends on them, such as
                lists of one entry per layer, follows), or any other argument of
                `model`.

        Raises:
            ValueError: `overrides` names no argument, or a value is out of range.
        """
        if vocabulary_size is not None:
            overrides = {"source_vocabulary_size": None, **overrides}
            overrides["vocabulary_size"] = vocabulary_size
        if dtype is not None:
            overrides["dtype"] = dtype
        chosen = {key: overrides.pop(key, self.options[key]) for key in self.options}
        return self.model.from_config({**self.architecture(**chosen), **overrides})
