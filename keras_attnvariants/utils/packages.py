"""Packages: which are installed, and how those that are not can be."""

import importlib.util
from collections.abc import Iterable
from importlib import metadata


def installed(name: str) -> str | None:
    """The version of an installed package, or `None`."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed, by name."""
    return {name: version for name in names if (version := installed(name)) is not None}


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra."""
    return f"pip install 'keras_attnvariants[{extra}]'"


def check_extra(what: str, extra: str, modules: Iterable[str]) -> None:
    """Raises unless modules of an extra can be imported.

    Args:
        what: what needs them, as a sentence begins.
        extra: the extra that installs them.
        modules: names of top-level modules.

    Raises:
        ValueError: says which are missing, and how to install them.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"{what} needs {' and '.join(missing)}, not installed here: "
            f"{install_command(extra)}"
        )
