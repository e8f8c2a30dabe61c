"""What an analysis returns: rows that print, that are saved, and that are drawn."""

import io
import os
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import ClassVar

import rich.table
from rich.console import Console
from rich.text import Text

from keras_attnvariants.utils.tables import write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 160


@dataclass(frozen=True)
class Table:
    """Base class of the results.

    A subclass has a title and draws itself; its rows are named tuples of one kind.

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
        from keras_attnvariants.analysis import drawing
        from keras_attnvariants.evaluation.curves import save_png

        figure = self.draw(drawing)
        if path is not None:
            save_png(figure, Path(path))
        return figure

    def draw(self, drawing: Any) -> "Figure":
        """The picture, drawn with the module `drawing`."""
        raise NotImplementedError(f"{type(self).__name__} has no picture.")

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
