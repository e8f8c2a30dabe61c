"""The default settings of a model's search."""

from collections.abc import Mapping
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from typing import Any

from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a beam search that a model carries with it.

    A preset gives those of its paper to the models that it builds; they are saved and
    loaded with the model. Search, translation, evaluation and export use them for what
    a call leaves open.

    Attributes:
        beam_size: number of hypotheses per sentence.
        length_penalty: exponent of the length normalization; 0 for none.
        extra_length: by how many tokens a translation may exceed its source.

    Raises:
        ValueError: a value is out of range.

    Example:

    >>> from keras_attnvariants import presets
    >>> preset = presets.get("rosendahl2021/context/iwslt17-en-it")
    >>> model = preset.build(100, num_layers=1, hidden_dim=16, intermediate_dim=16)
    >>> SearchSettings.of(model, length_penalty=1.0)
    SearchSettings(beam_size=12, length_penalty=1.0, extra_length=50)
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    extra_length: int = 50

    def __post_init__(self) -> None:
        check_integer("beam_size", self.beam_size)
        check_integer("extra_length", self.extra_length, minimum=0)
        check_finite("length_penalty", self.length_penalty)

    @classmethod
    def of(cls, model: Any, **given: Any) -> "SearchSettings":
        """The settings of a model, with those that are given in their place.

        Args:
            model: any step model; one without settings has the defaults.
            **given: fields of this class, or `None` for that of the model.
        """
        own = getattr(model, "search_settings", cls())
        return replace(own, **{k: v for k, v in given.items() if v is not None})

    @classmethod
    def get(
        cls, identifier: "Mapping[str, Any] | SearchSettings | None"
    ) -> "SearchSettings":
        """Settings from themselves, from their `to_dict`, or the defaults."""
        if isinstance(identifier, Mapping):
            return cls(**identifier)
        return cls() if identifier is None else identifier

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON can hold them."""
        return asdict(self)
