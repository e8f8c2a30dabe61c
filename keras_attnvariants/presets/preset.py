"""Presets: how to build a configuration, how it was trained, and what it scored."""

from collections.abc import Callable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field
from typing import Any

import keras
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from keras_attnvariants.models import SearchSettings
from keras_attnvariants.models import Transformer
from keras_attnvariants.presets.counting import count_parameters
from keras_attnvariants.utils.typing import DType


def layer_config(class_name: str, **config: Any) -> dict[str, Any]:
    """An object of this package in its serialized form in Keras."""
    return {"class_name": f"keras_attnvariants>{class_name}", "config": config}


def learned_attention(num_heads: int, **options: Any) -> dict[str, Any]:
    """Learned dot-product attention in serialized form."""
    return layer_config("DotProductAttention", num_heads=num_heads, **options)


def with_front_end(
    architecture: Callable[..., dict[str, Any]],
    front_end: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """An architecture that can also read recordings.

    Args:
        architecture: maps `options` to the arguments of a model.
        front_end: further arguments of the `SpeechFrontEnd` of a `Transformer`; `None`
            for a model that reads tokens.
        **options: options of the architecture.
    """
    config = architecture(**options)
    if front_end is None:
        return config
    layer = layer_config("SpeechFrontEnd", hidden_dim=config["hidden_dim"], **front_end)
    return {**config, "source_embedding": layer}


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(SearchSettings):
    """The settings with which a configuration is trained, decoded and scored.

    `dataclasses.asdict` gives values that JSON can hold.

    Attributes:
        schedule: the learning rate, in the form that
            `keras.optimizers.schedules.deserialize` takes.
        batch_tokens: source and target tokens per update, together.
        steps: number of updates.
        label_smoothing: probability mass taken from the label.
        ctc_weight: factor of a CTC loss of the encoder's outputs, for speech.
        beta_1, beta_2, epsilon: settings of Adam.
        averaged_checkpoints: how many of the last checkpoints are averaged into the
            final weights.
        beam_size, length_penalty, extra_length, min_length, no_repeat_ngram: as in
            `SearchSettings`.
        vocabulary: how words are split into tokens.
        metric: how the published figures were computed, as far as the paper says.
        batch_sentences: sentence pairs per update, where the paper counts pairs;
            `batch_tokens` is then an estimate.
        epochs: passes over the data, where the paper counts epochs; `steps` is then
            an estimate.
    """

    schedule: Mapping[str, Any]
    batch_tokens: int
    steps: int
    label_smoothing: float
    ctc_weight: float | None = None
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-9
    averaged_checkpoints: int = 1
    vocabulary: str = ""
    metric: str = ""
    batch_sentences: int | None = None
    epochs: int | None = None

    @property
    def search(self) -> SearchSettings:
        """The decoding settings, which are stored in the model."""
        names = SearchSettings().to_dict()
        return SearchSettings(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class PublishedFigures:
    """The figures that the paper reports.

    Attributes:
        bleu: BLEU of translations of the test set by direction, such as `"en-de"`.
        sentences_per_second: speed of translation on the paper's GPU.
        max_batch_tokens: number of tokens of the largest training batch that fits into
            the memory of the paper's GPU.
        ter: translation edit rate on the test set by direction; lower is better.
        dev_bleu, dev_ter: the same on the development set.
        rouge: F1 of summaries by measure, such as `"rouge-1"`.
        wer: word error rate in per cent by test set; lower is better.
        parameters: number of parameters as printed, in whole millions.
        relative_training_time: training time relative to the paper's baseline.
        loss: cross-entropy per token, in nats.
        perplexity: exponential of the loss.
    """

    bleu: Mapping[str, float] = field(default_factory=dict)
    sentences_per_second: float | None = None
    max_batch_tokens: int | None = None
    ter: Mapping[str, float] = field(default_factory=dict)
    dev_bleu: Mapping[str, float] = field(default_factory=dict)
    dev_ter: Mapping[str, float] = field(default_factory=dict)
    rouge: Mapping[str, float] = field(default_factory=dict)
    wer: Mapping[str, float] = field(default_factory=dict)
    parameters: int | None = None
    relative_training_time: float | None = None
    loss: float | None = None
    perplexity: float | None = None


PLACES = ("encoder_attention", "decoder_attention", "cross_attention")


def attention_layers(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All attention among the arguments of a model, in serialized form."""
    values = [config.get(place) for place in PLACES]
    entries = [e for v in values for e in (v if isinstance(v, list) else [v])]
    return [entry for entry in entries if entry]


@dataclass(frozen=True)
class Preset(JupyterMixin):
    """A published configuration, or one of our own.

    Attributes:
        name: `paper/variant/corpus`, such as `"you2020/hc-sa/iwslt16-en-de"`.
        paper: the publication, or a description of our own configurations.
        architecture: function that maps `options` to the arguments of `model`, in
            the form of its `get_config`.
        options: arguments of the architecture, such as sizes, with the published
            values; `build` accepts other values.
        training: how it was trained and decoded.
        published: its scores; empty where nothing was published.
        notes: remarks on the figures.
        model: class of the model.
        task: name of the task of its models.

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
    training: TrainingSettings
    published: PublishedFigures = PublishedFigures()
    notes: str = ""
    model: type[keras.Model] = Transformer
    task: str = "translation"

    def __rich__(self) -> Table:
        """A table of its fields, as a notebook shows it."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        rows: list[tuple[str, Any]] = [
            ("preset", self.name),
            ("paper", self.paper),
            ("model", self.model.__name__),
            ("layers", ", ".join(sorted(self.attention))),
            ("parameters", f"{self.parameters:,}"),
            *self.options.items(),
            ("updates", f"{self.training.steps:,}"),
            *((f"published {k}", v) for k, v in vars(self.published).items()),
            ("notes", self.notes),
        ]
        for name, value in rows:
            if value not in (None, "", {}):
                table.add_row(name, Text(str(value)))
        return table

    @property
    def variant(self) -> str:
        """The middle part of the name, such as `"hc-sa"`."""
        return self.name.split("/")[1]

    @property
    def corpus(self) -> str:
        """The last part of the name, such as `"iwslt16-en-de"`."""
        return self.name.split("/")[2]

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of `model` as JSON values, in the form of its `get_config`."""
        return self.architecture(**self.options)

    @property
    def parameters(self) -> int:
        """Number of parameters, counted without allocating arrays."""
        return count_parameters(self.model, self.config)

    @property
    def attention(self) -> frozenset[str]:
        """Names of the attention classes in the model; none for a `Seq2SeqLSTM`.

        >>> from keras_attnvariants import presets
        >>> sorted(presets.get("you2020/hc-sa/iwslt16").attention)
        ['DotProductAttention', 'HardCodedAttention']
        """
        layers = attention_layers(self.config)
        return frozenset(layer["class_name"].split(">")[-1] for layer in layers)

    def build(
        self,
        vocabulary_size: int | None = None,
        dtype: DType = None,
        **overrides: Any,
    ) -> keras.Model:
        """A new model of this configuration, with random weights.

        Args:
            vocabulary_size: number of tokens of a joint vocabulary; `None` for the
                published vocabulary, or vocabularies.
            dtype: dtype policy of the model; `None` for Keras' current policy.
            **overrides: other values for `options`, or any other argument of
                `model`. Arguments that depend on an option change with it, such as a
                list with one entry per layer.

        Raises:
            ValueError: an override names no argument, or a value is out of range.
        """
        if dtype is not None:
            overrides["dtype"] = dtype
        own = {"search_settings": self.training.search.to_dict(), "task": self.task}
        return self.model.from_config(own | self._arguments(vocabulary_size, overrides))

    def check(self, vocabulary_size: int | None = None, **overrides: Any) -> None:
        """Raises the error that `build` would raise; no array is allocated.

        Raises:
            ValueError: an override names no argument, or a value is out of range.
        """
        self.count(vocabulary_size, **overrides)

    def count(self, vocabulary_size: int | None = None, **overrides: Any) -> int:
        """Number of parameters of the model that `build` would return.

        No array is allocated.

        Raises:
            ValueError: an override names no argument, or a value is out of range.
        """
        arguments = self._arguments(vocabulary_size, overrides)
        return count_parameters(self.model, arguments)

    def _arguments(
        self, vocabulary_size: int | None, overrides: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments of `model` with other values for some options."""
        given = dict(overrides)
        if vocabulary_size is not None:
            given = {"source_vocabulary_size": None, **given}
            given["vocabulary_size"] = vocabulary_size
        chosen = {key: given.pop(key, self.options[key]) for key in self.options}
        return {**self.architecture(**chosen), **given}
