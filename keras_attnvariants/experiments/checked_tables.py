"""Reads tables of a TOML file into dataclasses whose fields check their values."""

import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Sequence
from dataclasses import MISSING
from dataclasses import field
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_known
from keras_attnvariants.utils.checks import check_table
from keras_attnvariants.utils.files import TEMPORARY
from keras_attnvariants.utils.files import write_file

# A file to begin with.
TEMPLATE = files("keras_attnvariants.experiments") / "template.toml"
# A name that a folder can have.
NAME = re.compile(rf"(?!{TEMPORARY})[^\W_][^/\\]{{,59}}")
# Takes the name of a key and its value; returns the value, or raises a `ValueError`.
Check = Callable[[str, Any], Any]


def write_template(path: Path) -> None:
    """Writes a file that explains every key of a comparison.

    Raises:
        FileExistsError: the file exists.
        OSError: it cannot be written.
    """
    if path.exists():
        raise FileExistsError(f"The file already exists. Received: {path}")
    write_file(path, TEMPLATE.read_bytes())


def key(
    check: Check, default: Any = MISSING, *, factory: Any = MISSING, name: str = ""
) -> Any:
    """A field that is a key of the file, by default under its own name."""
    metadata = {"check": check, "name": name}
    return field(default=default, default_factory=factory, metadata=metadata)


def optional_table(kind: Any) -> Any:
    """A field that is a table of the file with defaults for all its keys."""
    return key(within(kind), factory=kind)


def read_table(kind: Any, where: str, values: Any, **others: Any) -> Any:
    """The dataclass that a table of the file describes.

    Args:
        kind: the dataclass, with fields by `key`.
        where: name of the table; `""` for the top of the file.
        values: the table.
        **others: fields that are not keys.

    Raises:
        ValueError: a key is unknown (the message has the nearest) or missing, or a
            value is wrong.
    """
    keys = {f.metadata["name"] or f.name: f for f in fields(kind) if f.metadata}
    check_keys(where, values, keys)
    for name, described in keys.items():
        path = f"{where}.{name}" if where else name
        if name in values:
            others[described.name] = described.metadata["check"](path, values[name])
        elif described.default is described.default_factory is MISSING:
            raise ValueError(f"`{path}` is missing.")
    return kind(**others)


def check_keys(where: str, values: Any, known: Collection[str]) -> None:
    """Check that a value is a table with known keys.

    Raises:
        ValueError: it is not; the message has the nearest key.
    """
    for name in check_table(where, values):
        check_known(f"[{where}]" if where else "The top of the file", name, known)


def within(kind: Any, **others: Any) -> Check:
    """A check for a table."""
    return lambda name, value: read_table(kind, name, value, **others)


def named(kind: Any, short: str = "") -> Check:
    """A check for a table of tables by name.

    Args:
        kind: dataclass of the tables, with a field `name`.
        short: the key that a text instead of a table sets.
    """

    def check(where: str, values: Any) -> tuple[Any, ...]:
        found = []
        for name, value in check_table(where, values).items():
            given = {short: value} if short and isinstance(value, str) else value
            found.append(read_table(kind, f"{where}.{name}", given, name=name))
        return tuple(found)

    return check


def path_name(name: str) -> str:
    """A name in the form of a folder name."""
    return re.sub(r"[^\w.+-]", "-", name)


def check_names(where: str, names: Sequence[str]) -> None:
    """Check that there are names, all different, that folders can have.

    Raises:
        ValueError: the message says which name is wrong.
    """
    if not names:
        raise ValueError(f"`{where}` must have at least one table or entry.")
    # Some file systems do not distinguish upper and lower case.
    folders = [path_name(name).casefold() for name in names]
    for name, folder in zip(names, folders, strict=True):
        if not (NAME.fullmatch(name) and name.isprintable()):
            raise ValueError(
                f"`{where}` must have names of at most 60 characters, without slashes "
                "and control characters, that begin with a letter or digit: folders "
                f"are named after them. Received: {name!r}"
            )
        same = [n for n, f in zip(names, folders, strict=True) if f == folder]
        if len(same) > 1:
            raise ValueError(
                f"`{where}` must have names that differ as names of folders. "
                f"Received: {' and '.join(map(repr, same))}"
            )


def text(name: str, value: Any) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"`{name}` must be a text. Received: {value!r}")


def count(name: str, value: Any) -> int:
    """A number of things, which may be 0."""
    return check_integer(name, value, minimum=0)


def one_of(known: Collection[str]) -> Check:
    """A check for one of some texts."""

    def check(name: str, value: Any) -> str:
        check_known(f"`{name}`", text(name, value), known)
        return str(value)

    return check


def each(check: Check) -> Check:
    """A check for a list, not empty, of different values that each pass `check`."""

    def check_all(name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or not value:
            raise ValueError(f"`{name}` must be a list. Received: {value!r}")
        found = tuple(check(name, item) for item in value)
        if same := [item for item in found if found.count(item) > 1]:
            raise ValueError(f"`{name}` must not repeat. Received: {same[0]!r} twice")
        return found

    return check_all
