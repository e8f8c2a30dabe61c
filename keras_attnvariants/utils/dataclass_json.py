"""Dataclasses as JSON, and back."""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import TypeVar

from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import write_file

T = TypeVar("T")


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass as JSON; what is not finite becomes `null`.

    Raises:
        OSError: the file cannot be written.
    """
    values = without_nan(dataclasses.asdict(record))
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    write_file(path, f"{text}\n".encode())


def read_record(path: Path, kind: type[T]) -> T:
    """The dataclass in a JSON file that `write_record` wrote.

    Raises:
        DamagedFolderError: there is none that can be read.
    """
    values = read_json(path)
    try:
        return restored(kind, values)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DamagedFolderError(
            f"{path.name} is no {kind.__name__}: remove it. Received: {path}"
        ) from error


def restored(kind: Any, value: Any) -> Any:
    """A value of JSON as its type annotation says.

    Args:
        kind: a dataclass, or `tuple[…]`, `dict[…]` and unions with `None` of what is
            known.
        value: what `json.loads` returned.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{key: restored(hints[key], item) for key, item in value.items()})
    if value is None or kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        [inner] = [argument for argument in arguments if argument is not type(None)]
        return restored(inner, value)
    if origin is tuple:
        return tuple(restored(arguments[0], item) for item in value)
    if origin is dict:
        return {key: restored(arguments[1], item) for key, item in value.items()}
    return float(value) if kind is float else value


def without_nan(value: Any) -> Any:
    """The same with `None` for each number that is not finite, and plain containers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [without_nan(item) for item in value]
    return value
