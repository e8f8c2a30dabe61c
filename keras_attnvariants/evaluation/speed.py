"""How fast texts are translated."""

import time
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from statistics import median

from rich.table import Table

from keras_attnvariants.evaluation.metrics import check_texts


@dataclass(frozen=True)
class Speed:
    """How fast texts were translated.

    Attributes:
        sentences, tokens: number translated in one run; tokens of the output.
        seconds: of each timed run.
        warm_up_seconds: of the run before them, which compiles.
        translations: of the warm-up run.
    """

    sentences: int
    tokens: int
    seconds: tuple[float, ...]
    warm_up_seconds: float
    translations: list[str] = field(repr=False)

    @property
    def sentences_per_second(self) -> float:
        """Of the run that took the median time."""
        return self.sentences / median(self.seconds)

    @property
    def tokens_per_second(self) -> float:
        """Of the run that took the median time."""
        return self.tokens / median(self.seconds)

    def to_dict(self) -> dict[str, float | list[float]]:
        """A form that JSON can hold."""
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
    translate: Callable[[list[str]], list[str]],
    texts: Sequence[str],
    runs: int = 3,
    count_tokens: Callable[[str], int] | None = None,
) -> Speed:
    """Times a function that translates texts.

    Args:
        translate: takes a list of strings, returns one string for each.
        texts: what to translate.
        runs: number of timed runs; a run before them warms up and is timed apart.
        count_tokens: number of tokens of one translation; `None` counts what
            white space separates.

    Returns:
        A `Speed`, printed as a table by `rich.print`.

    Raises:
        ValueError: `texts` is empty or holds something else than strings, `runs`
            is not positive, or `translate` does not return a string per text.

    Example:

    >>> speed = measure_speed(lambda texts: [text.upper() for text in texts], ["a b"])
    >>> speed.translations, speed.tokens
    (['A B'], 2)
    """
    texts = check_texts("texts", texts)
    if not isinstance(runs, int) or runs < 1:
        raise ValueError(f"`runs` must be a positive integer. Received: {runs!r}")
    warm_up, translations = timed(translate, texts)
    translations = check_texts("translate(texts)", translations)
    if len(translations) != len(texts):
        raise ValueError(
            f"`translate` must return one string per text. "
            f"Received: {len(translations)} strings for {len(texts)} texts"
        )
    seconds = tuple(timed(translate, texts)[0] for _ in range(runs))
    count = count_tokens or (lambda text: len(text.split()))
    tokens = sum(count(text) for text in translations)
    return Speed(len(texts), tokens, seconds, warm_up, translations)


def timed(translate: Callable, texts: list[str]) -> tuple[float, list[str]]:
    """The seconds that a translation took, and the translation."""
    start = time.perf_counter()
    translations = translate(texts)
    return time.perf_counter() - start, translations
