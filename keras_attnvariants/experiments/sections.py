"""Tables of a TOML file, read key by key: what is wrong is told with the key."""

import tomllib
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.checks import check_known

_MISSING = object()

Check = Callable[[str, Any], Any]


class Section:
    """A table of which all keys are known.

    Args:
        name: of the table; `""` for the top of the file.
        values: its keys and values.
        known: the keys that it may have; `None` for any.

    Raises:
        ValueError: it is no table, or a key is unknown; the message has the nearest.
    """

    def __init__(
        self, name: str, values: Any, known: Collection[str] | None = None
    ) -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"`{name}` must be a table. Received: {values!r}")
        self.name = name
        self.values = values
        if known is not None:
            for key in values:
                check_known(f"[{name}]" if name else "The top of the file", key, known)

    def path(self, key: str) -> str:
        """The key with the name of its table."""
        return f"{self.name}.{key}" if self.name else key

    def take(self, key: str, check: Check, default: Any = _MISSING) -> Any:
        """The value of a key, checked.

        Args:
            key: the key.
            check: raises `ValueError` for a name and a wrong value; returns the value.
            default: if there is no such key.

        Raises:
            ValueError: the value is wrong, or missing and without a default.
        """
        if key in self.values:
            return check(self.path(key), self.values[key])
        if default is _MISSING:
            raise ValueError(f"`{self.path(key)}` is missing.")
        return default

    def section(self, key: str, known: Collection[str] | None = None) -> "Section":
        """The table under a key; without any, an empty one."""
        return Section(self.path(key), self.values.get(key, {}), known)

    def sections(
        self, key: str, known: Collection[str] | None = None
    ) -> list["Section"]:
        """The tables of a table."""
        outer = self.section(key)
        return [outer.section(name, known) for name in outer.values]


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its values.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no TOML.
    """
    data = path.read_bytes()
    try:
        text = data.decode()
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"It is no TOML: {error}") from error


def text(name: str, value: Any) -> str:
    """`value` if it is a text.

    Raises:
        ValueError: it is not, or it is empty.
    """
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"`{name}` must be a text. Received: {value!r}")


def table(name: str, value: Any) -> dict[str, Any]:
    """`value` if it is a table.

    Raises:
        ValueError: it is not.
    """
    if isinstance(value, dict):
        return value
    raise ValueError(f"`{name}` must be a table. Received: {value!r}")


def one_of(known: Collection[str]) -> Check:
    """A check for one of some texts."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"`{name}` must be a text. Received: {value!r}")
        check_known(f"`{name}`", value, known)
        return value

    return check


def each(check: Check) -> Check:
    """A check for a list, not empty, of different values that pass a check."""

    def check_all(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"`{name}` must be a list. Received: {value!r}")
        found = tuple(check(name, item) for item in value)
        for number, item in enumerate(found):
            if item in found[:number]:
                raise ValueError(f"`{name}` must not repeat. Received: {item!r} twice")
        return found

    return check_all
