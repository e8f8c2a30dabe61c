"""The versions of an exported model, found without anything that could run them."""

import os
from pathlib import Path

# TensorFlow leaves this folder of a SavedModel to its users.
INFO = Path("assets.extra") / "model_info.json"


def versions(path: str | os.PathLike[str]) -> list[int]:
    """The versions in a folder, in ascending order."""
    names = (entry.name for entry in Path(path).glob("[0-9]*") if entry.is_dir())
    return sorted(int(name) for name in names if name.isdecimal())


def newest_version(path: str | os.PathLike[str]) -> Path:
    """The folder of the newest version in a folder, or that folder if it is a version.

    Raises:
        FileNotFoundError: it is no SavedModel of this package.
    """
    folder = Path(path)
    if numbers := versions(folder):
        folder /= str(numbers[-1])
    if not (folder / INFO).is_file():
        raise FileNotFoundError(
            "A SavedModel of this package is a folder with saved_model.pb and "
            f"{INFO}, or a folder of such versions. Received: {path}"
        )
    return folder
