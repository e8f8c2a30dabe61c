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
        x, y: where it is; `x` may be a name.
        low, high: its interval.
        label: what it is, where its curve and `x` do not say it.
    """

    x: float | str
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


class Panel(NamedTuple):
    """One pair of axes of a picture.

    Attributes:
        title: above them.
        kind: `"points"`, `"lines"` or `"bars"`, one below the other.
        curves: values by name.
        across: label of `x`.
        up: label of the values.
    """

    title: str
    kind: str
    curves: Mapping[str, Sequence[Value]]
    across: str
    up: str


@dataclass(frozen=True)
class Table:
    """Base class of the results.

    A subclass has a title and says what its picture shows; its rows are named tuples
    of one kind.

    Attributes:
        rows: the rows, in order.
        sentences: number of sentences, or pairs of them, that were analysed.
        skipped: number of those that were not: empty, or too long for the model.
    """

    title: ClassVar[str] = ""

    rows: tuple[Any, ...]
    sentences: int
    skipped: int = 0

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

        Raises:
            OSError: the file cannot be written.
        """
        rows = (map(exact, row) for row in self.rows)
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
        raise NotImplementedError(f"{type(self).__name__} has no picture.")

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


def head_panel(
    heads: Iterable[tuple[str, int, int | None, float | None]], title: str, up: str
) -> Panel:
    """A point for each head, above its layer.

    Args:
        heads: place, layer, number and value of each; one number for all is `None`.
        title: of the panel.
        up: label of the values.
    """
    heads = list(heads)
    places = list(dict.fromkeys(place for place, *_ in heads))
    curves: dict[str, list[Value]] = {place: [] for place in places}
    for place, layer, head, value in heads:
        if value is None:
            continue
        shift = 0.16 * (places.index(place) - (len(places) - 1) / 2)
        label = f"{place}, layer {layer}" + (f", head {head}" if head else "")
        curves[place].append(Value(layer + shift, value, label=label))
    return Panel(title, "points", curves, "layer", up)


def grouped(rows: Sequence[Any], *fields: str) -> dict[Any, list[Any]]:
    """The rows by the values of some of their columns, in order."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        values = tuple(getattr(row, field) for field in fields)
        groups.setdefault(values[0] if len(fields) == 1 else values, []).append(row)
    return groups


def exact(value: Any) -> Any:
    """A value as a file has it: nothing for `None`, six digits of a fraction."""
    return f"{value:.6g}" if isinstance(value, float) else value


def readable(value: Any) -> str:
    """A value for people to read."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def draw_panels(panels: Sequence[Panel]) -> "Figure":
    """A figure with the panels side by side."""
    from matplotlib.figure import Figure

    width, height = PANEL[0] * len(panels), PANEL[1]
    bars = [
        len(values) for p in panels if p.kind == "bars" for values in p.curves.values()
    ]
    if bars:
        width, height = 2 * width, BAR * max(bars) + 1.2
    figure = Figure(figsize=(width, height), layout="constrained")
    for number, panel in enumerate(panels, start=1):
        axis = figure.add_subplot(1, len(panels), number)
        draw = draw_bars if panel.kind == "bars" else draw_curves
        draw(axis, panel)
    return figure


def draw_curves(axis: Any, panel: Panel) -> None:
    """Points or lines by name, with their intervals."""
    from keras_attnvariants.evaluation.curves import COLORS
    from keras_attnvariants.evaluation.curves import decorate

    has_intervals = any(v.low is not None for vs in panel.curves.values() for v in vs)
    for number, (name, values) in enumerate(panel.curves.items()):
        if not values:
            continue
        x, y, low, high, _ = zip(*values, strict=True)
        style: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "label": name}
        if panel.kind == "points":
            axis.plot(x, y, "o", alpha=0.7, **style)
        elif has_intervals:
            axis.plot(x, y, "o-", markersize=4, **style)
            axis.fill_between(
                x, low, high, color=style["color"], alpha=0.15, linewidth=0
            )
        else:
            dashes = ("-", "--", ":")[number // len(COLORS) % 3]
            axis.plot(x, y, dashes, linewidth=1.4, **style)
    decorate(axis, panel.title, panel.across, panel.up)
    axis.legend(frameon=False, fontsize=8)


def draw_bars(axis: Any, panel: Panel) -> None:
    """A bar for each name, with an interval."""
    from keras_attnvariants.evaluation.curves import COLORS
    from keras_attnvariants.evaluation.curves import INK
    from keras_attnvariants.evaluation.curves import decorate

    [values] = panel.curves.values()
    names, lengths, low, high, _ = zip(*values, strict=True)
    errors = [
        [value - bound for value, bound in zip(lengths, low, strict=True)],
        [bound - value for value, bound in zip(lengths, high, strict=True)],
    ]
    places = range(len(names))
    axis.barh(places, lengths, xerr=errors, color=COLORS[0], ecolor=INK, height=0.7)
    decorate(axis, panel.title, panel.up)
    axis.set_yticks(places, names)
    axis.invert_yaxis()
