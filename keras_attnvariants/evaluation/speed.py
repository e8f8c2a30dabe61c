"""How fast texts are translated."""

import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from statistics import median

from rich.table import Table

from keras_attnvariants.evaluation.metrics import check_texts
from keras_attnvariants.utils.checks import check_integer

Translate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Speed:
    """How fast texts were translated.

    Attributes:
        sentences: number of texts translated in one run.
        tokens: number of tokens in their translations.
        seconds: duration of each timed run.
        warm_up_seconds: duration of the run before them, which includes compilation.
        translations: the output of that run.
    """

    sentences: int
    tokens: int
    seconds: tuple[float, ...]
    warm_up_seconds: float
    translations: list[str] = field(repr=False)

    @property
    def sentences_per_second(self) -> float:
        """Sentences per second at the median duration."""
        return self.sentences / median(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second at the median duration."""
        return self.tokens / median(self.seconds)

    def to_dict(self) -> dict[str, float | list[float]]:
        """A JSON-able dict, without the translations."""
        return {
            "sentences_per_second": self.sentences_per_second,
            "tokens_per_second": self.tokens_per_second,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "seconds": list(self.seconds),
            "warm_up_seconds": self.warm_up_seconds,
        }

    def __rich__(self) -> Table:
        runs = f"median of {len(self.seconds)}, warm-up {self.warm_up_seconds:.2f} s"
        table = Table("Speed", runs)
        table.columns[1].justify = "right"
        table.add_row("sentences / s", f"{self.sentences_per_second:,.1f}")
        table.add_row("tokens / s", f"{self.tokens_per_second:,.1f}")
        return table


def measure_speed(
    translate: Translate,
    texts: Sequence[str],
    runs: int = 3,
    count_tokens: Callable[[str], int] | None = None,
) -> Speed:
    """Times a function that translates texts.

    Args:
        translate: takes a list of strings and returns one string for each.
        texts: what to translate.
        runs: number of timed runs; one more run precedes them as a warm-up.
        count_tokens: returns the number of tokens of a translation; `None` splits
            at white space.

    Returns:
        A `Speed`, shown as a table by `rich.print`.

    Raises:
        ValueError: `texts` is empty or not a sequence of strings, `runs` is not
            positive, or `translate` does not return one string per text.

    Example:

    >>> speed = measure_speed(lambda texts: [text.upper() for text in texts], ["a b"])
    >>> speed.translations, speed.tokens
    (['A B'], 2)
    """
    texts = check_texts("texts", texts)
    check_integer("runs", runs)
    warm_up, translations = timed(translate, texts)
    seconds = tuple(timed(translate, texts)[0] for _ in range(runs))
    tokens = sum(map(count_tokens or count_words, translations))
    return Speed(len(texts), tokens, seconds, warm_up, translations)


def timed(translate: Translate, texts: list[str]) -> tuple[float, list[str]]:
    """The seconds that a translation took, and the translations.

    Raises:
        ValueError: there is not one string per text.
    """
    start = time.perf_counter()
    translations = translate(texts)
    seconds = time.perf_counter() - start
    translations = check_texts("translate(texts)", translations)
    if len(translations) != len(texts):
        raise ValueError(
            f"`translate` must return one string per text. "
            f"Received: {len(translations)} strings for {len(texts)} texts"
        )
    return seconds, translations


def count_words(text: str) -> int:
    """Number of words, separated by white space."""
    return len(text.split())
