"""Options that several commands have, and checks of what they are given."""

import os
from collections.abc import Callable
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from typing import Any

import typer

from keras_attnvariants.cli.commands import one_line
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.importing import import_tensorflow
from keras_attnvariants.utils.machine import check_extra


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


class Precision(StrEnum):
    """What a trained model computes in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


_MODEL = typer.Option(
    "--model",
    "--run",
    help="Folder of a run, of which the better model is taken (best validation "
    "or averaged weights), or a model folder.",
)
Model = Annotated[Path | None, _MODEL]
RequiredModel = Annotated[Path, _MODEL]
SavedModel = Annotated[
    Path | None,
    typer.Option(help="Folder that `kav export` wrote. Its beam size is fixed."),
]
SourceTag = Annotated[
    str | None,
    typer.Option(help="Word in front of each source, with which --model was trained."),
]
# A thousand is what studies of very wide beams use; memory grows with the width.
BeamSize = Annotated[
    int | None,
    typer.Option(
        help="Hypotheses kept per sentence, at most 1000; default: as in the preset.",
        min=1,
        max=1000,
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        "--precision", help="What the model computes in; default: as in training."
    ),
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Module to import first, such as package.module, installed or in the "
        "working directory: variants and presets of your own. May be repeated.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The beam search, where it is not that of the preset."""

    beam_size: BeamSize = None
    length_penalty: Annotated[
        float | None,
        typer.Option(
            help="Exponent of the length normalisation; default: as in the preset.",
            callback=checked(check_finite),
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was given, by the names of the arguments of searches."""
        return given(**vars(self))


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def import_modules(modules: Sequence[str] | None) -> None:
    """Imports TensorFlow, and then the modules that the user names.

    Raises:
        ValueError: one of them cannot be imported.
    """
    import_tensorflow()
    for module in modules or ():
        import_named("--import", module)


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
