"""Options of exports: how they search, and what a request may hold at most."""

from dataclasses import dataclass
from typing import Any
from typing import Self
from typing import TypedDict
from typing import Unpack

from keras_attnvariants.data.tasks import task_of
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_integer

# The width of every bucket but the widest is a multiple of it.
_NARROWEST = 8

# Default limit of characters, and characters per token of models that read more.
_CHARACTERS, _CHARACTERS_PER_TOKEN = 4096, 16


class ExportOptions(TypedDict, total=False):
    """Options of `export`; each can be left out.

    Attributes:
        beam_size, length_penalty: options of the beam search; by default those of the
            model's `search_settings`.
        n_best: translations that `nbest` returns; by default `beam_size`.
        max_batch: sentences in a request, at most; by default 64.
        max_characters: characters of a text that are read; by default 4096, or 16 for
            each token that is read by default, if that is more.
        max_tokens: tokens of a source or target that are read; by default 256 for
            translation and 1024 for summaries, or what the model accepts if that is
            less.
        shortlist_width: number of shortlisted tokens of each sentence; by default one
            in 16 tokens of the vocabulary, but at least 500.
    """

    beam_size: int | None
    length_penalty: float | None
    n_best: int | None
    max_batch: int
    max_characters: int | None
    max_tokens: int | None
    shortlist_width: int | None


@dataclass(frozen=True)
class Options:
    """The search of an exported model, and the limits of a request.

    The fields are those of `ExportOptions`, with defaults filled in: `shortlist_width`
    is `None` if there is no shortlist.
    """

    beam_size: int
    length_penalty: float
    n_best: int
    max_batch: int = 64
    max_characters: int = _CHARACTERS
    max_tokens: int = 256
    shortlist_width: int | None = None

    @classmethod
    def of(
        cls, model: Any, has_shortlist: bool = False, **given: Unpack[ExportOptions]
    ) -> Self:
        """The given options, with those of a model for the others.

        Args:
            model: any step model.
            has_shortlist: whether there is a shortlist, which has a width.
            **given: options; `None` is as if they were left out.

        Raises:
            ValueError: one is out of range, or excludes another.
        """
        values: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        if "shortlist_width" in values and not has_shortlist:
            raise ValueError(
                "`shortlist_width` needs `shortlist`. Received: "
                f"{values['shortlist_width']} without one"
            )
        if has_shortlist:
            values.setdefault("shortlist_width", max(500, model.vocabulary_size // 16))
        names = values.keys() & {"beam_size", "length_penalty"}
        search = SearchSettings.of(model, **{name: values.pop(name) for name in names})
        values.setdefault("n_best", search.beam_size)
        longest = model.max_length
        if getattr(model, "source_stride", 1) == 1:  # a recording is read as a whole
            longest = min(task_of(model).max_length, longest)
        values.setdefault("max_tokens", longest)
        characters = max(_CHARACTERS, _CHARACTERS_PER_TOKEN * longest)
        values.setdefault("max_characters", characters)
        options = cls(search.beam_size, search.length_penalty, **values)
        for name in ("n_best", "max_batch", "max_characters", "max_tokens"):
            check_integer(name, getattr(options, name))
        if options.max_tokens > model.max_length:
            raise ValueError(
                f"`max_tokens` must be at most that of the model ({model.max_length}). "
                f"Received: {options.max_tokens}"
            )
        return options

    @property
    def buckets(self) -> tuple[int, ...]:
        """Source widths in ascending order, the last of them `max_tokens`.

        A request costs little more than its longest source needs.
        """
        widths = sizes_up_to(self.max_tokens)
        return (*(w for w in widths[:-1] if w % _NARROWEST == 0), self.max_tokens)


def sizes_up_to(largest: int) -> list[int]:
    """Few sizes in ascending order, the last of them `largest`.

    Beyond 2, each is larger than the one before by half at most.
    """
    powers = [2**exponent for exponent in range(largest.bit_length())]
    sizes = [size for power in powers for size in (power, power * 3 // 2)]
    return sorted({*(size for size in sizes if size < largest), largest})
