"""An ensemble: several models that translate together."""

import math
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_attnvariants.attention.registry import PACKAGE
from keras_attnvariants.models import templates
from keras_attnvariants.models.base import SearchSettings
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.typing import NestedTensors
from keras_attnvariants.utils.typing import Tensor

# Attributes that must be equal for all members of an ensemble.
SHARED_ATTRIBUTES = (
    "vocabulary_size",
    "source_vocabulary_size",
    "source_stride",
    "pad_id",
    "bos_id",
    "eos_id",
)

AVERAGES = ("probabilities", "log_probabilities")


@keras.saving.register_keras_serializable(package=PACKAGE)
class Ensemble(keras.Model):
    """Step models whose predictions are averaged at each position.

    An ensemble is a step model itself: every search, `score`, `Translator`,
    `save_model` and `keras_attnvariants.serving.export` accept it. A step costs as much
    as the steps of all members together. Alignments are averaged too.

    Args:
        members: step models with the same vocabularies and special tokens, such as
            runs of one preset with several seeds.
        average: `"probabilities"` for the logarithm of their mean, or
            `"log_probabilities"` for a geometric mean, which is low if one member is.
        search_settings: as for any model; by default those of the first member.
        **kwargs: as in `keras.Model`.

    Attributes:
        members: the models.
        max_length: the smallest `max_length` of the members.

    Raises:
        ValueError: there are no members, or they differ in a vocabulary or special
            token.

    Example:

    >>> import numpy as np
    >>> import keras_attnvariants as kav
    >>> attention = kav.DotProductAttention(num_heads=2)
    >>> first = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
    >>> second = kav.Seq2SeqLSTM(100, embedding_dim=8, hidden_dim=8)
    >>> both = kav.decoding.Ensemble([first, second])
    >>> found = kav.beam_search(both, np.array([[5, 6, 7]]), max_length=6)
    >>> tuple(found.ids.shape)
    (1, 1, 6)
    """

    def __init__(
        self,
        members: Sequence[Any],
        average: str = "probabilities",
        search_settings: SearchSettings | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        members = list(members)
        check_members(members)
        kwargs.setdefault("dtype", lowest_precision(members))
        super().__init__(**kwargs)
        self.members = members
        self.average = check_choice("average", average, AVERAGES)
        for name in SHARED_ATTRIBUTES:
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))
        self.max_length = min(member.max_length for member in members)
        settings = search_settings or SearchSettings.of(members[0])
        self.search_settings = SearchSettings.get(settings)
        self.task = getattr(members[0], "task", "translation")
        quantized = (getattr(member, "quantization", None) for member in members)
        self.quantization = next(filter(None, quantized), None)
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the members are built."""
        self.built = True

    def averaged(self, logits: Sequence[Tensor]) -> Tensor:
        """The averaged predictions of the members, float32 log probabilities."""
        log_probs = [ops.log_softmax(ops.cast(x, "float32"), axis=-1) for x in logits]
        stacked = ops.stack(log_probs)
        if self.average == "probabilities":
            return ops.logsumexp(stacked, axis=0) - math.log(len(log_probs))
        # A search normalizes the probabilities again.
        return ops.mean(stacked, axis=0)

    def call(
        self, inputs: Mapping[str, Tensor], training: bool | None = None
    ) -> Tensor:
        return self.averaged(
            [member(inputs, training=training) for member in self.members]
        )

    def compute_output_spec(
        self, inputs: Mapping[str, Tensor], training: bool | None = None
    ) -> keras.KerasTensor:
        shape = (*inputs["target_ids"].shape, self.vocabulary_size)
        return keras.KerasTensor(shape, dtype="float32")

    # The step-model protocol: contexts and states are those of the members, in a list

    def encode(self, source_ids: Tensor) -> NestedTensors:
        return [member.encode(source_ids) for member in self.members]

    def initial_state(
        self, context: NestedTensors, beams: int, max_length: int
    ) -> NestedTensors:
        return [
            member.initial_state(part, beams, max_length)
            for member, part in zip(self.members, context, strict=True)
        ]

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        state: NestedTensors,
        context: NestedTensors,
        return_attention_scores: bool = False,
    ) -> tuple[Any, ...]:
        outputs = [
            member.step(tokens, position, *parts, return_attention_scores)
            for member, *parts in zip(self.members, state, context, strict=True)
        ]
        logits, states, *alignments = map(list, zip(*outputs, strict=True))
        means = (ops.mean(ops.stack(each), axis=0) for each in alignments)
        return self.averaged(logits), states, *means

    # Keras

    def quantize(self, mode: str | None = None, **kwargs: Any) -> None:
        """As in Keras: quantizes the members."""
        for member in self.members:
            member.quantize(mode, **kwargs)
        self.quantization = mode

    def get_config(self) -> dict[str, Any]:
        return {
            "members": templates.serialize(self.members),
            "average": self.average,
            "search_settings": self.search_settings.to_dict(),
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "Ensemble":
        # A dtype in the configuration applies to the members.
        given = {"dtype": config["dtype"]} if "dtype" in config else {}
        members = [
            keras.saving.deserialize_keras_object(
                {**member, "config": member["config"] | given}, custom_objects
            )
            for member in config["members"]
        ]
        return cls(**{**config, "members": members})


def lowest_precision(members: Sequence[Any]) -> Any:
    """The dtype policy of a member in half precision, or else of the first member."""
    policies = [getattr(member, "dtype_policy", None) for member in members]
    half = (p for p in policies if p is not None and p.compute_dtype != "float32")
    return next(half, policies[0])


def check_members(members: Sequence[Any]) -> None:
    """Raises `ValueError` unless the models can translate together."""
    if not members:
        raise ValueError("`members` must hold at least one model. Received: []")
    for name in SHARED_ATTRIBUTES:
        values = [getattr(member, name, None) for member in members]
        if len(set(values)) > 1:
            raise ValueError(
                f"`members` must have the same `{name}`. Received: {values}"
            )
