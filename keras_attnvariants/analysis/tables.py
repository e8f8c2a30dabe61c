"""The results of analyses: rows that are printed, saved, and drawn with matplotlib."""

import os
import tomllib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

import numpy as np
import rich.table
from rich.console import Console
from rich.console import ConsoleOptions
from rich.jupyter import JupyterMixin
from rich.text import Text

from keras_attnvariants.analysis.pictures import Drawing
from keras_attnvariants.analysis.pictures import Panel
from keras_attnvariants.analysis.pictures import draw_panels
from keras_attnvariants.evaluation.attention_maps import DOTS_PER_INCH
from keras_attnvariants.utils.chunks import chunks
from keras_attnvariants.utils.records import as_text
from keras_attnvariants.utils.records import write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Width of text, in characters.
WIDTH = 160
TEXTS = tomllib.loads(Path(__file__).with_name("analyses.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Table(JupyterMixin):
    """The result of an analysis.

    Attributes:
        title: title of the table.
        rows: the rows, in order; named tuples of one kind.
        sentences: number of pairs analysed; 0 if the table is not about pairs.
        skipped: number of pairs that were empty or too long for the model.
        drawings: ways to draw the rows; the first one that finds values is used.
    """

    title: str
    rows: tuple[Any, ...]
    sentences: int = 0
    skipped: int = 0
    drawings: tuple[Drawing, ...] = ()

    @classmethod
    def of(
        cls, analysis: str, rows: Iterable[Any], sentences: int, skipped: int = 0
    ) -> Self:
        """The table of an analysis by its name; numbers in the rows may be NumPy's."""
        plain = (
            type(row)(*(v.item() if isinstance(v, np.generic) else v for v in row))
            for row in rows
        )
        title, drawings = TEXTS[analysis]["title"], TEXTS[analysis].get("drawings", ())
        drawn = tuple(Drawing(**drawing) for drawing in drawings)
        return cls(title, tuple(plain), sentences, skipped, drawn)

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

        Fractions have six digits; `None` becomes an empty cell.

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
        figure = self.figure()
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=DOTS_PER_INCH)
        return figure

    def panels(self) -> list[Panel]:
        """The values of the picture, by pairs of axes."""
        found = (drawing.panels(self.rows, self.title) for drawing in self.drawings)
        return next(filter(None, found), [])

    def figure(self) -> "Figure":
        """The picture, drawn with matplotlib."""
        return draw_panels(self.panels())

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[rich.table.Table]:
        """The table, split into several if it is too wide."""
        skipped = f", {self.skipped:,} skipped" if self.skipped else ""
        pairs = f"{self.sentences:,} pair{'s' if self.sentences != 1 else ''}"
        title = f"{self.title}{f' ({pairs}{skipped})' if self.sentences else ''}"
        for columns in self._parts(options.max_width):
            # As wide as its title, which would wrap otherwise.
            width = min(len(title), options.max_width)
            table = rich.table.Table(title=title, box=None, min_width=width)
            for name, cells in columns.items():
                is_text = any(isinstance(cell, str) for cell in cells)
                table.add_column(
                    name, justify="left" if is_text else "right", no_wrap=not is_text
                )
            for row in zip(*columns.values(), strict=True):
                # `Text`, because rich would interpret square brackets as markup.
                table.add_row(*(Text(readable(value)) for value in row))
            yield table

    def _parts(self, width: int) -> list[dict[str, Sequence[Any]]]:
        """Columns that fit side by side; texts and whole numbers are in every part."""
        columns = dict(zip(self.columns, zip(*self.rows, strict=True), strict=True))
        wide = {n: max(map(len, [n, *map(readable, columns[n])])) + 2 for n in columns}
        values = [
            n for n in columns if not all(isinstance(c, str | int) for c in columns[n])
        ]
        room = width - sum(wide[name] for name in columns.keys() - {*values})
        most = max(1, room // max((wide[name] for name in values), default=1))
        return [
            {n: columns[n] for n in columns if n in part or n not in values}
            for part in [*chunks(values, most)] or [[]]
        ]

    def __str__(self) -> str:
        return as_text(self, WIDTH)


def readable(value: Any) -> str:
    """A value for people to read."""
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
