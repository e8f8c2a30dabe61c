"""Records: dataclasses in JSON files, and rows of tables in CSV files."""

import csv
import io
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any
from typing import TypeVar

from rich.console import Console

from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.files import write_file

T = TypeVar("T")


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass as JSON; numbers that are not finite become `null`.

    Raises:
        OSError: the file cannot be written.
    """
    # Imported here: few commands need it.
    from pydantic import TypeAdapter

    replace_file(path, TypeAdapter(type(record)).dump_json(record) + b"\n")


def read_record(path: Path, kind: type[T]) -> T:
    """The dataclass in a JSON file that `write_record` wrote.

    Raises:
        DamagedFolderError: there is no readable record.
    """
    # Imported here: few commands need it.
    from pydantic import TypeAdapter

    values = read_json(path)
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValueError as error:
        raise DamagedFolderError(
            f"{path.name} is not a valid {kind.__name__}: remove it. Received: {path}"
        ) from error


def grouped(rows: Iterable[Any], *fields: str) -> dict[Any, list[Any]]:
    """The rows of a table by the values of some of their columns, in order."""
    key = attrgetter(*fields)
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def as_text(shown: Any, width: int) -> str:
    """Text that `rich` prints on a page of a given width, without trailing spaces.

    Args:
        shown: a table, or something else that `rich` prints.
        width: characters of a line.
    """
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(shown)
    lines = console.export_text().split("\n")
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")


# A spreadsheet takes a text that begins with one of these for a formula.
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


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows by `write_csv`, under the names of the columns.

    Args:
        path: the file.
        rows: cells by column; a row need not have all columns.

    Raises:
        OSError: the file cannot be written.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    write_csv(path, [columns, *([row.get(name) for name in columns] for row in rows)])


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
