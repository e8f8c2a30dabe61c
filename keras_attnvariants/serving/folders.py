"""Folders of exported models: their versions, and the files to deploy them.

Nothing here loads a model.
"""

import contextlib
import os
import re
import string
from pathlib import Path
from typing import Any

from keras_attnvariants.data.audio import AudioTokenizer
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.files import write_file

GRAPH = "saved_model.pb"
# TensorFlow leaves this folder of a SavedModel to its users.
INFO = Path("assets.extra") / "model_info.json"

# What to do with a SavedModel that is damaged.
REMEDY = "restore it from a copy, or export the model again"

# The oldest release of TensorFlow Serving that exports are known to work with.
SERVING_VERSION = "2.19.1"

_TEMPLATES = Path(__file__).with_name("templates")
_BYTES_OF_CHARACTER = 4
_BYTES_OF_SAMPLE = 3 * 4  # in JSON
_BYTES_OF_ID = 11
_MEGABYTE = 1_000_000


def versions(path: str | os.PathLike[str]) -> list[int]:
    """The versions in a folder, in ascending order."""
    names = (entry.name for entry in Path(path).glob("[0-9]*") if entry.is_dir())
    return sorted(int(name) for name in names if name.isdecimal())


def saved_models(path: str | os.PathLike[str]) -> list[Path]:
    """The SavedModels in a folder: its versions in ascending order, or itself.

    A folder without `saved_model.pb` is damaged if it has other files of a SavedModel.
    """
    folder = Path(path)
    places = [folder / str(number) for number in versions(folder)] or [folder]
    signs = (GRAPH, INFO, "variables")
    return [each for each in places if any((each / sign).exists() for sign in signs)]


def read_info(path: Path) -> dict[str, Any]:
    """The content of `assets.extra/model_info.json` in the folder of one version.

    Raises:
        DamagedFolderError: it is missing, or does not say what a request may hold.
    """
    with contextlib.suppress(LookupError, TypeError, DamagedFolderError):
        info: dict[str, Any] = read_json(path / INFO)
        names = ("max_batch", "max_characters", "max_tokens")
        limits = [info["options"][name] for name in names]
        is_whole = all(isinstance(limit, int) and limit > 0 for limit in limits)
        if is_whole and "inputs" in info["signatures"]["serving_default"]:
            return info
    raise DamagedFolderError(
        f"{INFO} does not say what a request may hold: {REMEDY}. Received: {path}"
    )


def newest_version(path: str | os.PathLike[str]) -> Path:
    """The folder of the newest version in a folder, or that folder if it is a version.

    Raises:
        FileNotFoundError: it is not a SavedModel of this package.
    """
    folder = Path(path)
    if numbers := versions(folder):
        folder /= str(numbers[-1])
    if not (folder / INFO).is_file():
        raise FileNotFoundError(
            "A SavedModel of this package is a folder with "
            f"{GRAPH} and {INFO}, or a folder of such versions. Received: {path}"
        )
    return folder


class Template(string.Template):
    """Text with placeholders `@@name`: nginx and Compose use `$`."""

    delimiter = "@@"


def write_deployment(
    path: str | os.PathLike[str], folder: str | os.PathLike[str]
) -> list[Path]:
    """Writes the configuration to serve an exported version; edit it as you like.

    | file | for |
    |---|---|
    | `compose.yaml` | Docker Compose: server and proxy on one machine |
    | `kustomization.yaml`, `kubernetes.yaml` | the same on Kubernetes |
    | `serving/models.config` | versions that are served, with the labels `stable` and
        `canary` |
    | `serving/monitoring.config` | metrics for Prometheus |
    | `proxy/nginx.conf`, `proxy/limits.js` | limits before the server |

    A file that exists is kept: the folder is yours.

    Args:
        path: folder of a version, as `export` returned it.
        folder: where to write; need not exist.

    Returns:
        The files that were written.

    Raises:
        ValueError: the name of the model has characters that servers refuse.
    """
    path, folder = Path(path).resolve(), Path(folder).resolve()
    model = path.parent.name
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", model):
        raise ValueError(
            "The folder of all versions names the model on the server: give it a name "
            f"of letters, digits, dots and hyphens. Received: {model!r}"
        )
    info = read_info(path)
    values = {
        "model": model,
        # Kubernetes and Compose accept fewer characters than file systems.
        "name": re.sub(r"[^a-z0-9]+", "-", model.lower()),
        "version": path.name,
        "models": os.path.relpath(path.parent, folder),
        "serving_version": SERVING_VERSION,
        "megabytes": megabytes(info["options"], info["signatures"]),
    }
    written = []
    for template in sorted(filter(Path.is_file, _TEMPLATES.rglob("*"))):
        target = folder / template.relative_to(_TEMPLATES)
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        text = Template(template.read_text("utf-8")).substitute(values)
        write_file(target, text.encode())
        written.append(target)
    return written


def megabytes(options: dict[str, Any], signatures: dict[str, Any]) -> int:
    """The largest sensible size of a request in megabytes, rounded up."""
    row = options["max_tokens"] * _BYTES_OF_ID
    if "audio" in signatures["serving_default"]["inputs"]:
        row = options["max_tokens"] * AudioTokenizer.source_stride * _BYTES_OF_SAMPLE
    if "text" in signatures["serving_default"]["inputs"]:
        # Source and target; JSON may take three bytes for one.
        row = max(row, 2 * options["max_characters"] * _BYTES_OF_CHARACTER)
    return 1 + options["max_batch"] * row // _MEGABYTE
