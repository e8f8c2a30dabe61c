"""Records: dataclasses in JSON files, and rows of tables in CSV files."""

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import TypeVar

from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import replace_file
from keras_attnvariants.utils.files import write_file

T = TypeVar("T")


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass as JSON; what is not finite becomes `null`.

    Raises:
        OSError: the file cannot be written.
    """
    values = _without_nan(dataclasses.asdict(record))
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    replace_file(path, f"{text}\n".encode())


def _without_nan(value: Any) -> Any:
    """The same with `None` for each number that is not finite, and plain containers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_without_nan(item) for item in value]
    return value


def read_record(path: Path, kind: type[T]) -> T:
    """The dataclass in a JSON file that `write_record` wrote.

    Raises:
        DamagedFolderError: there is none that can be read.
    """
    # Late: few need it.
    from pydantic import TypeAdapter

    values = read_json(path)
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValueError as error:
        raise DamagedFolderError(
            f"{path.name} is no {kind.__name__}: remove it. Received: {path}"
        ) from error


# A spreadsheet takes these for the beginning of a formula.
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
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
