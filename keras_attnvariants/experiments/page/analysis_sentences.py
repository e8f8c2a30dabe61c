"""The results of analyses, in a sentence for each system."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from statistics import fmean
from typing import Any
from typing import NamedTuple

from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import listed
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.result_tables import AnalysisTable

Row = dict[str, Any]
PLACES = ("encoder", "decoder", "cross")


def ours(name: str, tables: Sequence[AnalysisTable]) -> Iterator[tuple[str, str]]:
    """Systems and what was found of them, or why nothing was."""
    description = DESCRIPTIONS.get(name)
    for table in tables:
        if table.note:
            yield table.system, table.note
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        if description and rows:
            for system, text in description.tell(rows):
                yield system or table.system, text


def of_places(rows: list[Row], field: str) -> str:
    """The mean of a column for each place."""
    parts = []
    for place in PLACES:
        values = [
            row[field]
            for row in rows
            if row["place"] == place and row[field] is not None
        ]
        if values:
            parts.append(f"{place} {fixed(fmean(values))}")
    return ", ".join(parts) or "no head has weights"


def locality(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Mean distances, and that of the first encoder layer."""
    text = of_places(rows, "distance")
    first = [r["distance"] for r in rows if (r["place"], r["layer"]) == ("encoder", 1)]
    if first:
        text += f"; in encoder layer 1 from {fixed(min(first))} to {fixed(max(first))}"
    yield "", text


def distance(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The weight on a token and its neighbours in the lowest and highest layer."""
    layers = sorted({row["layer"] for row in rows if row["place"] == "encoder"})
    parts = []
    for layer in dict.fromkeys(layers[:1] + layers[-1:]):
        near = sum(
            row["weight"]
            for row in rows
            if (row["place"], row["layer"]) == ("encoder", layer)
            and abs(row["distance"]) <= 1
        )
        parts.append(f"{fixed(100 * near, 0)} % in encoder layer {layer}")
    if parts:
        yield "", listed(parts)


def off_diagonality(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The share of each place."""
    of_all = [row for row in rows if row["head"] is None]
    yield "", of_places(of_all or rows, "share")


def entropy(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The mean of each place."""
    yield "", of_places(rows, "entropy")


def bleu_by_bin(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The difference to the first system in the lowest and the highest bin."""
    measures = list(dict.fromkeys(row["by"] for row in rows))
    for by in measures:
        own = [row for row in rows if row["by"] == by and row["difference"] is not None]
        for system in dict.fromkeys(row["system"] for row in own):
            bins = [row for row in own if row["system"] == system]
            parts = [
                f"{signed(row['difference'])} ({signed(row['difference_low'])} to "
                f"{signed(row['difference_high'])})"
                for row in (bins[0], bins[-1])
            ]
            where = f"by {by}: " if len(measures) > 1 else ""
            yield system, where + ", then ".join(parts)


def contrastive(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The accuracy over all pairs, and the hardest kind."""
    pairs = sum(row["pairs"] for row in rows)
    right = 100 * sum(row["right"] for row in rows) / max(pairs, 1)
    worst = min(rows, key=lambda row: row["accuracy"])
    yield (
        "",
        f"{fixed(right, 1)} % of {pairs:,}; {worst['category']} "
        f"{fixed(worst['accuracy'], 1)} % ({fixed(worst['low'], 1)} to "
        f"{fixed(worst['high'], 1)})",
    )


def agreement(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The accuracy at the shortest and at the longest distance."""
    near, far = rows[0], rows[-1]
    yield (
        "",
        f"{fixed(near['accuracy'], 1)} % at {near['measure']} {near['distance']}, "
        f"{fixed(far['accuracy'], 1)} % at {far['distance']}",
    )


def alignment_errors(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The head with the lowest rate."""
    best = min(rows, key=lambda row: row["error_rate"])
    head = f"head {best['head']}" if best["head"] is not None else "the mean of heads"
    rate = fixed(best["error_rate"], 3)
    if "low" in best:  # older results have no intervals
        rate += f" ({fixed(best['low'], 3)} to {fixed(best['high'], 3)})"
    yield "", f"{rate}, {head} of layer {best['layer']}"


def activation_shares(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """The quadrant with the most winners in each layer."""
    grams = {1: "token", 2: "phrase"}
    won = [row for row in rows if row["measure"] == "winner"]
    parts = []
    for place, layer in dict.fromkeys((row["place"], row["layer"]) for row in won):
        best = max(
            (row for row in won if (row["place"], row["layer"]) == (place, layer)),
            key=lambda row: row["share"],
        )
        query, key = (grams.get(best[n], f"{best[n]}-gram") for n in ("query", "key"))
        share = fixed(best["share"], 0)
        parts.append(f"{query} to {key} in {place} layer {layer} ({share} %)")
    if parts:
        yield "", listed(parts)


class Description(NamedTuple):
    """How the results of an analysis are told.

    Attributes:
        lead: the figures that follow the name of each system.
        tell: from the rows to systems, `""` for that of the table, and sentences.
    """

    lead: str
    tell: Callable[[list[Row]], Iterator[tuple[str, str]]]


DESCRIPTIONS = {
    "locality": Description("mean distance of heads, in tokens", locality),
    "distance": Description("weight on a token and its two neighbours", distance),
    "entropy": Description("mean of heads, in bits", entropy),
    "off-diagonality": Description("share of off-diagonal tokens", off_diagonality),
    "bleu-by-length": Description(
        "difference and its interval in the first and the last bin", bleu_by_bin
    ),
    "bleu-by-off-diagonality": Description(
        "difference and its interval in the first and last bin", bleu_by_bin
    ),
    "contrastive": Description(
        "pairs that are right, and the category with the fewest", contrastive
    ),
    "agreement": Description("pairs that are right, near and far", agreement),
    "alignment-errors": Description("lowest rate", alignment_errors),
    "activation-shares": Description(
        "quadrant that has the largest weights most often", activation_shares
    ),
}
