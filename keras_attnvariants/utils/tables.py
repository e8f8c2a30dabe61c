"""Tables as files that spreadsheets open."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.files import write_file

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Writes rows as UTF-8, separated by commas, with `\\n` after each.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    Numbers stay as they are.

    Args:
        path: the file, which appears complete or not at all.
        rows: texts, numbers or `None` each.

    Raises:
        OSError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    write_file(path, text.getvalue().encode("utf-8"))


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not is_number(cell):
        return f"'{cell}"
    return cell


def is_number(text: str) -> bool:
    """Whether a text is a number, such as `-0.5`."""
    try:
        float(text)
    except ValueError:
        return False
    return True
