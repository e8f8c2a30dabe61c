"""Analyses as the page shows them: pictures, figures in words, and tables."""

from collections import namedtuple
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from itertools import chain
from typing import Any

from keras_attnvariants.analysis.named import ANALYSES
from keras_attnvariants.analysis.tables import Panel as TablePanel
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.experiments.page.analysis_sentences import DESCRIPTIONS
from keras_attnvariants.experiments.page.analysis_sentences import ours
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import number
from keras_attnvariants.experiments.page.vega_charts import Panel
from keras_attnvariants.experiments.page.vega_charts import Point
from keras_attnvariants.experiments.page.vega_charts import panel_svg
from keras_attnvariants.experiments.result_tables import AnalysisTable
from keras_attnvariants.experiments.results import ComparisonResult

# Of an analysis; longer ones are only in the files beside the page.
MOST_ROWS = 400


@dataclass(frozen=True)
class Picture:
    """One panel of an analysis.

    Attributes:
        title: what it shows: a system, a place or both.
        svg: the drawing.
        wide: the same for a wide page, where one or two are alone; else empty.
        series: names of what has a color, in the order of the colors.
    """

    title: str
    svg: str
    wide: str
    series: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """One analysis of all systems.

    Attributes:
        name: as `kav analyse --analysis` has it.
        title, source, finding, definition: see `AnalysisTable`.
        lead: what the next figures are.
        ours: systems, and what was found of each.
        data: on what.
        pictures: side by side.
        columns, rows: of the table; no rows if there are too many.
        count: number of all rows.
        palette: what colors are given to in turn.
    """

    name: str
    title: str
    source: str
    finding: str
    definition: str
    lead: str
    ours: tuple[tuple[str, str], ...]
    data: str
    pictures: tuple[Picture, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    count: int
    palette: tuple[str, ...]

    @property
    def series(self) -> tuple[str, ...]:
        """Names of all that has a color in one of the pictures."""
        return tuple(dict.fromkeys(chain(*(p.series for p in self.pictures))))


def analyses(result: ComparisonResult) -> Iterator[Analysis]:
    """The analyses of a comparison, in order."""
    names = [system.name for system in result.systems]
    for name in dict.fromkeys(table.analysis for table in result.analyses):
        tables = [table for table in result.analyses if table.analysis == name]
        first = next((table for table in tables if table.rows), tables[0])
        several = any(table.system for table in tables)
        rows = [
            (table.system, *row) if several else row
            for table in tables
            for row in table.rows
        ]
        panels = panels_of(tables)
        palette = palette_of(panels, names)
        sentences = f"{first.sentences:,} sentences of {first.test_set}"
        yield Analysis(
            name,
            first.title,
            first.source,
            first.finding,
            first.definition,
            DESCRIPTIONS[name].lead if name in DESCRIPTIONS else "",
            tuple(ours(name, tables)),
            f"{sentences}, seed {first.seed}" if first.test_set else sentences,
            tuple(drawn(panels, palette)),
            ("system", *first.columns) if several else first.columns,
            tuple(rows) if len(rows) <= MOST_ROWS else (),
            len(rows),
            palette,
        )


def panels_of(tables: Sequence[AnalysisTable]) -> list[Panel]:
    """The panels of all tables, with titles that begin with the system."""
    return [
        shown_panel(panel, table.system)
        for table in tables
        if table.rows and table.analysis in ANALYSES
        for panel in restored(table).panels()
    ]


def shown_panel(panel: TablePanel, system: str) -> Panel:
    """A panel of `kav.analysis` with its values in words."""
    across, up = panel.across, panel.up
    # The page has the title of a table above its only panel.
    title = panel.title if panel.kind == "lines" else ""
    if panel.kind == "bars":
        across, up = up, ""
    points = []
    for name, values in panel.curves.items():
        for x, y, low, high, label in values:
            label = label or f"{name}, {across} {number(float(x))}"
            text = f"{label}: {fixed(y)} {up}".rstrip()
            if low is not None and high is not None:
                text += f", interval {fixed(low)} to {fixed(high)}"
            points.append(Point(x, y, name, text, low, high))
    return Panel(
        ": ".join(part for part in (system, title) if part),
        panel.kind,
        points,
        across,
        up,
        list(panel.curves),
        zero="difference" in up,
    )


def palette_of(panels: Sequence[Panel], systems: Sequence[str]) -> tuple[str, ...]:
    """Names that get a color in turn: all systems, or those that the panels show."""
    shown = tuple(dict.fromkeys(chain(*(panel.names for panel in panels))))
    return tuple(systems) if set(shown) <= set(systems) else shown


def drawn(panels: Sequence[Panel], palette: Sequence[str]) -> Iterator[Picture]:
    """The panels as pictures, those of one quantity on one scale."""
    width = {1: 600, 2: 400}.get(len(panels))
    for panel in panels:
        domain = common([other for other in panels if other.up == panel.up])
        panel = replace(panel, names=palette)
        wide = panel_svg(panel, domain, width, 260) if width else ""
        shown = {point.series for point in panel.points}
        series = tuple(name for name in palette if name in shown)
        yield Picture(panel.title, panel_svg(panel, domain), wide, series)


def restored(table: AnalysisTable) -> Table:
    """The table as `kav.analysis` made it, which knows its panels."""
    row = namedtuple("row", table.columns)  # type: ignore[misc]
    rows = tuple(row(*values) for values in table.rows)
    return ANALYSES[table.analysis].table(rows, table.sentences, table.skipped)


def common(panels: Sequence[Panel]) -> tuple[float, float] | None:
    """The range of the values of all panels, with their intervals."""
    values = [
        value
        for panel in panels
        for point in panel.points
        for value in (point.y, point.low, point.high)
        if value is not None
    ]
    return (min(values), max(values)) if values else None
