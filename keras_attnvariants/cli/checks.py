"""What is wrong with a call, found before any work."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from keras_attnvariants.cli.errors import one_line
from keras_attnvariants.utils.packages import check_extra


def checked(check: Callable[[str, Any], Any]) -> Callable[..., Any]:
    """The callback of an option whose value has to pass a check, unless it is `None`.

    Args:
        check: raises `ValueError` for a name and a wrong value.
    """

    def callback(param: typer.CallbackParam, value: Any) -> Any:
        try:
            return value if value is None else check(str(param.name), value)
        except ValueError as error:
            raise typer.BadParameter(one_line(str(error))) from error

    return callback


def check_matplotlib() -> None:
    """Raises unless pictures can be drawn.

    Raises:
        ValueError: says how to install what is missing.
    """
    check_extra("A picture", "plot", ("matplotlib",))


def check_output_file(path: Path | None) -> None:
    """Raises unless a file can be written there.

    Raises:
        OSError: its folder is missing or read-only, or it is a folder itself.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"`--output` must be a file. Received: {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"No such folder. Received: {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"No permission to write there. Received: {path}")


def check_output_folder(option: str, path: Path) -> None:
    """Raises unless a folder is there, or can be made there.

    Raises:
        OSError: it is a file, within a file, or within a read-only folder.
    """
    nearest = next(here for here in (path, *path.absolute().parents) if here.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(
            f"`{option}` must be a folder, and {nearest} is a file. Received: {path}"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(
            f"No permission to write into {nearest}. Received: {path}"
        )
