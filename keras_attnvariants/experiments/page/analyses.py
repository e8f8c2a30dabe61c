"""Analyses as the page shows them: pictures, and a sentence for each system."""

from collections import namedtuple
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from statistics import fmean
from typing import Any
from typing import NamedTuple

from keras_attnvariants.analysis import ANALYSES
from keras_attnvariants.analysis.pictures import Panel
from keras_attnvariants.analysis.quadrants import gram_name
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import listed
from keras_attnvariants.experiments.page.english import number
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.result_parts import AnalysisTable
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.utils.records import grouped

PLACES = ("encoder", "decoder", "cross")


class Analysis(NamedTuple):
    """One analysis of all systems.

    Attributes:
        first: the first table with rows.
        lead: the figures that follow the name of each system.
        ours: systems, and what was found of each.
        panels: the pictures.
        palette: names of series in the order in which they get colors.
        shown: names of those that are in a picture.
        columns, rows: the columns and rows of all tables.
    """

    first: AnalysisTable
    lead: str
    ours: list[tuple[str, str]]
    panels: list[Panel]
    palette: list[str]
    shown: list[str]
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def analyses(result: ComparisonResult) -> Iterator[Analysis]:
    """The analyses of a comparison, in order."""
    names = [system.name for system in result.systems]
    for name, tables in grouped(result.analyses, "analysis").items():
        first = next((table for table in tables if table.rows), tables[0])
        several = any(table.system for table in tables)
        panels = [
            shown_panel(panel, table.system)
            for table in tables
            if table.rows and name in ANALYSES
            for panel in restored(table).panels()
        ]
        found = dict.fromkeys(point.series for p in panels for point in p.points)
        palette = names if found.keys() <= set(names) else list(found)
        yield Analysis(
            first,
            TOLD[name][0] if name in TOLD else "",
            list(ours(tables)),
            panels,
            palette,
            [series for series in palette if series in found],
            ("system", *first.columns) if several else first.columns,
            [
                (table.system, *row) if several else row
                for table in tables
                for row in table.rows
            ],
        )


def restored(table: AnalysisTable) -> Table:
    """The table as `kav.analysis` made it, which knows its panels."""
    row = namedtuple("row", table.columns)  # type: ignore[misc]
    rows = tuple(row(*values) for values in table.rows)
    return ANALYSES[table.analysis].table(rows, table.sentences, table.skipped)


def shown_panel(panel: Panel, system: str) -> Panel:
    """A panel of `kav.analysis` with its values in words."""
    across, up = panel.across, panel.up
    if panel.kind == "bars":
        across, up = up, ""
    points = []
    for point in panel.points:
        label = point.label or f"{point.series}, {across} {number(float(point.x))}"
        text = f"{label}: {fixed(point.y)} {up}".rstrip()
        if point.low is not None and point.high is not None:
            text += f", interval {fixed(point.low)} to {fixed(point.high)}"
        points.append(point._replace(label=text))
    # The page has the title of a table above its only panel.
    title = panel.title if panel.kind == "lines" else ""
    title = ": ".join(part for part in (system, title) if part)
    return Panel(title, panel.kind, points, across, up, zero="difference" in up)


def ours(tables: Sequence[AnalysisTable]) -> Iterator[tuple[str, str]]:
    """Systems and what was found of them, or why nothing was."""
    for table in tables:
        if table.note:
            yield table.system, table.note
        if not table.rows or table.analysis not in TOLD:
            continue
        _, tell = TOLD[table.analysis]
        rows = restored(table).rows
        if table.system:
            if text := tell(rows):
                yield table.system, text
            continue
        several = len(grouped(rows, "by")) > 1
        for (by, system), own in grouped(rows, "by", "system").items():
            if text := tell(own):
                yield system, f"by {by}: {text}" if several else text


def of_places(field: str) -> Callable[[Sequence[Any]], str]:
    """A function that tells the mean of a column for each place."""

    def tell(rows: Sequence[Any]) -> str:
        known = [row for row in rows if getattr(row, field) is not None]
        places = grouped(known, "place")
        parts = [
            f"{place} {fixed(fmean(getattr(row, field) for row in places[place]))}"
            for place in PLACES
            if place in places
        ]
        return ", ".join(parts) or "no head has weights"

    return tell


def locality(rows: Sequence[Any]) -> str:
    """Mean distances, and those of the first encoder layer."""
    text = of_places("distance")(rows)
    first = [r.distance for r in rows if (r.place, r.layer) == ("encoder", 1)]
    if first:
        text += f"; in encoder layer 1 from {fixed(min(first))} to {fixed(max(first))}"
    return text


def distance(rows: Sequence[Any]) -> str:
    """The weight on a token and its neighbours in the lowest and highest layer."""
    layers = grouped([row for row in rows if row.place == "encoder"], "layer")
    if not layers:
        return ""
    parts = []
    for layer in dict.fromkeys((min(layers), max(layers))):
        near = sum(row.weight for row in layers[layer] if abs(row.distance) <= 1)
        parts.append(f"{fixed(100 * near, 0)} % in encoder layer {layer}")
    return listed(parts)


def off_diagonality(rows: Sequence[Any]) -> str:
    """The share of each place."""
    of_all = [row for row in rows if row.head is None]
    return of_places("share")(of_all or rows)


def bleu_by_bin(rows: Sequence[Any]) -> str:
    """The difference to the first system in the lowest and the highest bin."""
    bins = [row for row in rows if row.difference is not None]
    return ", then ".join(
        f"{signed(row.difference)} ({signed(row.difference_low)} to "
        f"{signed(row.difference_high)})"
        for row in (bins[:1] + bins[-1:])
    )


def contrastive(rows: Sequence[Any]) -> str:
    """The accuracy over all pairs, and the hardest kind."""
    pairs = sum(row.pairs for row in rows)
    right = 100 * sum(row.right for row in rows) / max(pairs, 1)
    worst = min(rows, key=lambda row: row.accuracy)
    return (
        f"{fixed(right, 1)} % of {pairs:,}; {worst.category} "
        f"{fixed(worst.accuracy, 1)} % ({fixed(worst.low, 1)} to "
        f"{fixed(worst.high, 1)})"
    )


def agreement(rows: Sequence[Any]) -> str:
    """The accuracy at the shortest and at the longest distance."""
    near, far = rows[0], rows[-1]
    return (
        f"{fixed(near.accuracy, 1)} % at {near.measure} {near.distance}, "
        f"{fixed(far.accuracy, 1)} % at {far.distance}"
    )


def alignment_errors(rows: Sequence[Any]) -> str:
    """The head with the lowest rate."""
    best = min(rows, key=lambda row: row.error_rate)
    head = f"head {best.head}" if best.head is not None else "the mean of heads"
    return (
        f"{fixed(best.error_rate, 3)} ({fixed(best.low, 3)} to {fixed(best.high, 3)}), "
        f"{head} of layer {best.layer}"
    )


def activation_shares(rows: Sequence[Any]) -> str:
    """The quadrant with the most winners in each layer."""
    won = [row for row in rows if row.measure == "winner"]
    parts = []
    for (place, layer), own in grouped(won, "place", "layer").items():
        best = max(own, key=lambda row: row.share)
        query, key = gram_name(best.query), gram_name(best.key)
        share = fixed(best.share, 0)
        parts.append(f"{query} to {key} in {place} layer {layer} ({share} %)")
    return listed(parts) if parts else ""


BY_BIN = ("difference and its interval in the first and the last bin", bleu_by_bin)
# How the results of an analysis are told: the figures that follow the name of each
# system, and a function from the rows of a system to a sentence, empty for none.
TOLD: dict[str, tuple[str, Callable[[Sequence[Any]], str]]] = {
    "locality": ("mean distance of heads, in tokens", locality),
    "distance": ("weight on a token and its two neighbours", distance),
    "entropy": ("mean of heads, in bits", of_places("entropy")),
    "off-diagonality": ("share of off-diagonal tokens", off_diagonality),
    "bleu-by-length": BY_BIN,
    "bleu-by-off-diagonality": BY_BIN,
    "contrastive": ("pairs that are right, of all and in the worst kind", contrastive),
    "agreement": ("pairs that are right, near and far", agreement),
    "alignment-errors": ("lowest rate", alignment_errors),
    "activation-shares": ("quadrant with most of the maxima", activation_shares),
}
