"""Parts of a result: measures of cost, analyses, translations, attention weights."""

from dataclasses import dataclass
from typing import Any
from typing import NamedTuple


class Measure(NamedTuple):
    """A measure, and its display format.

    Attributes:
        name: its name in the middle of a sentence.
        unit: unit of displayed values, if any.
        factor: factor from measured values to that unit.
        digits: digits after the point.
        more_is_better: whether a larger value is better.
    """

    name: str
    unit: str = ""
    factor: float = 1.0
    digits: int = 0
    more_is_better: bool = False

    @property
    def heading(self) -> str:
        """The name with the unit, as a heading."""
        return f"{self.name[0].upper()}{self.name[1:]} ({self.unit})"


# The costs by name, in the order of the tables; see `ComparisonResult.costs`.
COSTS = {
    "parameters": Measure("number of parameters", "million", 1e-6, 2),
    "updates": Measure("number of updates", "thousand", 1e-3, 1),
    "seconds": Measure("training time", "min", 1 / 60, 1),
    "cpu_seconds": Measure("processor time", "min", 1 / 60, 1),
    "tokens_per_second": Measure("training speed", "tokens/s", more_is_better=True),
    "memory_mib": Measure("peak memory", "MiB"),
    "sentences_per_second": Measure(
        "decoding speed", "sources/s", digits=1, more_is_better=True
    ),
}


@dataclass(frozen=True)
class AnalysisTable:
    """A table of `kav.analysis`.

    Attributes:
        analysis: its name, as `kav analyse --analysis` has it.
        title: title of the table.
        system: the analysed system; `""` for a table of all.
        seed: seed of the analysed run.
        test_set: name of the test set, or of other data.
        columns: names of the columns.
        rows: the rows.
        sentences, skipped: number of analysed sentences, and of skipped ones.
        source: where a paper shows it, such as `"You et al. 2020, Fig. 2"`.
        finding: what the paper found.
        definition: choices made here that the paper leaves open.
        note: why there are no rows.
    """

    analysis: str
    title: str
    system: str
    seed: int
    test_set: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    sentences: int
    skipped: int = 0
    source: str = ""
    finding: str = ""
    definition: str = ""
    note: str = ""


@dataclass(frozen=True)
class SampleSentence:
    """A sentence of a test set and its translations.

    Attributes:
        test_set: its name.
        number: number of the sentence, from 0.
        source, reference: the texts.
        translations: translations by each system's first seed, by name of the system.
    """

    test_set: str
    number: int
    source: str
    reference: str
    translations: dict[str, str]


@dataclass(frozen=True)
class AttentionLayer:
    """The weights of one layer of a system on a sample sentence and its reference.

    Attributes:
        system: its name.
        test_set, number: the sentence, which is one of the samples.
        place: `"encoder"`, `"decoder"` or `"cross"`.
        layer: its number, from 1 at the bottom.
        queries, keys: texts of rows and columns. Row `i` of the decoder is the position
            that predicts the token after `queries[i]`; in cross-attention `queries`
            are the predicted tokens.
        heads: `[H][T][S]`; for phrase attention, the weights between tokens.
        query_order, key_order: number of tokens of a query and of what it attends to.
        is_quadrant: whether `heads` is one matrix, the mean over heads, for phrases of
            these orders; otherwise, it is between tokens.
    """

    system: str
    test_set: str
    number: int
    place: str
    layer: int
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    heads: list[list[list[float]]]
    query_order: int = 1
    key_order: int = 1
    is_quadrant: bool = False
