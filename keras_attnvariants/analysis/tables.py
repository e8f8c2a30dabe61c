"""The results of analyses: rows that are printed, saved, and drawn with matplotlib."""

import io
import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar
from typing import NamedTuple
from typing import Self

import numpy as np
import rich.table
from rich.console import Console
from rich.text import Text

from keras_attnvariants.utils.files import write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Characters of a line of text.
WIDTH = 160
# In inches: of a panel, and of a bar.
PANEL, BAR = (4.5, 3.2), 0.3


class Value(NamedTuple):
    """A value in a picture.

    Attributes:
        x, y: its coordinates: numbers, or a name for `x`.
        low, high: its interval.
        label: its name, where its curve and `x` do not tell it.
    """

    x: Any
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


class Panel(NamedTuple):
    """One pair of axes of a picture.

    Attributes:
        title: above them.
        kind: see `Drawing`.
        curves: values by name.
        across: label of `x`.
        up: label of the values.
    """

    title: str
    kind: str
    curves: Mapping[str, Sequence[Value]]
    across: str
    up: str


class Drawing(NamedTuple):
    """The picture of a table, by the names of its columns.

    Attributes:
        y: column of the values; rows without one are left out.
        up: label of the values.
        x: column; rows without one are left out.
        across: label of `x`.
        kind: `"points"`, one for each head beside or above its layer; `"lines"`; or
            `"bars"`, one below the other.
        panel, curve: names of the panel and the curve of a row, with its columns as
            `{row.column}`. Points of all heads together are a curve of their own.
        interval: columns with the ends of the interval.
        x_end: column of the end of a bin that begins at `x`: its middle is shown.
    """

    y: str
    up: str
    x: str = "layer"
    across: str = "layer"
    kind: str = "points"
    panel: str = ""
    curve: str = "{row.place}"
    interval: tuple[str, str] = ("", "")
    x_end: str = ""

    def values(self, rows: Iterable[Any]) -> dict[str, dict[str, list[Value]]]:
        """The values of the picture by panel and curve."""
        found: dict[str, dict[str, list[Value]]] = {}
        for row in rows:
            x, y = getattr(row, self.x), getattr(row, self.y)
            if x is None or y is None:
                continue
            if self.x_end:
                x = (x + getattr(row, self.x_end)) / 2
            curve = self.curve.format(row=row)
            label = x if isinstance(x, str) else ""
            if self.kind == "points":
                curve = curve if row.head else f"mean of {curve}"
                head = f", head {row.head}" if row.head else ""
                label = f"{curve}, layer {row.layer}{head}"
            low, high = (getattr(row, name, None) for name in self.interval)
            curves = found.setdefault(self.panel.format(row=row), {})
            curves.setdefault(curve, []).append(Value(x, y, low, high, label))
        return found


@dataclass(frozen=True)
class Table:
    """Base class of the results.

    A subclass has a title and perhaps a drawing; its rows are named tuples of one kind.

    Attributes:
        rows: the rows, in order.
        sentences: number of sentences, or pairs of them, that were analysed.
        skipped: number of those that were not: empty, or too long for the model.
    """

    title: ClassVar[str] = ""
    drawing: ClassVar[Drawing | None] = None

    rows: tuple[Any, ...]
    sentences: int
    skipped: int = 0

    @classmethod
    def of(cls, rows: Iterable[Any], sentences: int, skipped: int = 0) -> Self:
        """The table of rows whose numbers may be NumPy's."""
        plain = (
            type(row)(*(v.item() if isinstance(v, np.generic) else v for v in row))
            for row in rows
        )
        return cls(tuple(plain), sentences, skipped)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; none if there are no rows."""
        return self.rows[0]._fields if self.rows else ()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the rows under a line with the names of the columns, as UTF-8.

        Fractions have six digits, and nothing stands for `None`.

        Raises:
            OSError: the file cannot be written.
        """
        rows = (
            [f"{value:.6g}" if isinstance(value, float) else value for value in row]
            for row in self.rows
        )
        write_csv(Path(path), [self.columns, *rows])

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draws the rows; needs matplotlib.

        Args:
            path: PNG file to save the picture as; `None` for no file.

        Returns:
            The figure.
        """
        from keras_attnvariants.evaluation.curves import save_png

        figure = self.figure()
        if path is not None:
            save_png(figure, Path(path))
        return figure

    def panels(self) -> list[Panel]:
        """The values of the picture, by pairs of axes."""
        return self.drawn(self.drawing) if self.drawing else []

    def drawn(self, drawing: Drawing) -> list[Panel]:
        """The rows as a drawing shows them."""
        panels = []
        for title, curves in drawing.values(self.rows).items():
            if drawing.kind == "points":
                # Side by side, so that none hides another.
                curves = {
                    name: [
                        v._replace(x=v.x + 0.16 * (number - (len(curves) - 1) / 2))
                        for v in values
                    ]
                    for number, (name, values) in enumerate(curves.items())
                }
            axes = (curves, drawing.across, drawing.up)
            panels.append(Panel(title or self.title, drawing.kind, *axes))
        return panels

    def figure(self) -> "Figure":
        """The picture, drawn with matplotlib."""
        return draw_panels(self.panels())

    def __rich__(self) -> rich.table.Table:
        skipped = f", {self.skipped:,} skipped" if self.skipped else ""
        title = f"{self.title} ({self.sentences:,} sentences{skipped})"
        # As wide as its title, which would be broken otherwise.
        table = rich.table.Table(title=title, box=None, min_width=len(title))
        for number, name in enumerate(self.columns):
            is_text = any(isinstance(row[number], str) for row in self.rows)
            table.add_column(name, justify="left" if is_text else "right")
        for row in self.rows:
            # `Text`, because rich would interpret square brackets as markup.
            table.add_row(*(Text(readable(value)) for value in row))
        return table

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=WIDTH, record=True)
        console.print(self)
        lines = console.export_text().split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")


def grouped(rows: Iterable[Any], *fields: str) -> dict[Any, list[Any]]:
    """The rows by the values of some of their columns, in order."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        values = tuple(getattr(row, field) for field in fields)
        groups.setdefault(values[0] if len(fields) == 1 else values, []).append(row)
    return groups


def readable(value: Any) -> str:
    """A value for people to read."""
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def draw_panels(panels: Sequence[Panel]) -> "Figure":
    """A figure with the panels side by side."""
    from matplotlib.figure import Figure

    from keras_attnvariants.evaluation.curves import decorate

    width, height = PANEL[0] * len(panels), PANEL[1]
    bars = [v for p in panels if p.kind == "bars" for v in p.curves.values()]
    if bars:
        width, height = 2 * width, BAR * max(map(len, bars)) + 1.2
    figure = Figure(figsize=(width, height), layout="constrained")
    for axis, panel in zip(
        figure.subplots(1, len(panels), squeeze=False).flat, panels, strict=True
    ):
        for number, (name, values) in enumerate(panel.curves.items()):
            draw_curve(axis, panel.kind, number, name, values)
        if panel.kind == "bars":
            decorate(axis, panel.title, panel.up)
            continue
        decorate(axis, panel.title, panel.across, panel.up)
        axis.legend(frameon=False, fontsize=8)
    return figure


def draw_curve(
    axis: Any, kind: str, number: int, name: str, values: Sequence[Value]
) -> None:
    """Points, a line with its interval, or bars with theirs."""
    from keras_attnvariants.evaluation.curves import COLORS
    from keras_attnvariants.evaluation.curves import INK

    x, y, low, high, _ = zip(*values, strict=True)
    color = COLORS[number % len(COLORS)]
    if kind == "bars":
        errors = np.abs(np.subtract([low, high], y))
        axis.barh(x, y, xerr=errors, color=color, ecolor=INK, height=0.7)
        axis.invert_yaxis()
    elif kind == "points":
        axis.plot(x, y, "o", alpha=0.7, color=color, label=name)
    elif low[0] is not None:
        axis.plot(x, y, "o-", markersize=4, color=color, label=name)
        axis.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    else:
        dashes = ("-", "--", ":")[number // len(COLORS) % 3]
        axis.plot(x, y, dashes, linewidth=1.4, color=color, label=name)
