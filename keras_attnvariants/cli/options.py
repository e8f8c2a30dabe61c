"""Options that several commands have, and checks of the places that they name."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from typing import Literal

from keras_attnvariants.cli.commands import option
from keras_attnvariants.trained.names import DEFAULT_MODEL
from keras_attnvariants.utils.checks import LARGEST_BEAM
from keras_attnvariants.utils.importing import import_named
from keras_attnvariants.utils.importing import import_tensorflow

TINY = 1e-9  # the least value of options that must be positive
MODEL_HELP = (
    "A name that `kav models` lists; the folder of a run, of which the better model is "
    "taken (best validation or averaged weights), or of a model; or an address, "
    "hf://… or kaggle://…."
)
TaskName = Literal["translation", "summarisation", "speech"]
REQUIRED_MODEL = option(MODEL_HELP, ..., "--model", "--run")
MODEL_OR_DEFAULT = option(MODEL_HELP, DEFAULT_MODEL, "--model", "--run")
FROM_MODEL = option(
    "Begin with the weights and the vocabulary of a trained model; a search also keeps "
    f"its sizes. {MODEL_HELP}",
    None,
    "--from",
)
BEAM_SIZE = option(
    f"Hypotheses kept per sentence, at most {LARGEST_BEAM}; default: as in the preset.",
    min=1,
    max=LARGEST_BEAM,
)
IMPORTS = option(
    "Module to import first, such as package.module, installed or in the working "
    "directory: variants and presets of your own. May be repeated.",
    None,
    "--import",
    metavar="MODULE",
)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of the beam search that replace the preset's."""

    beam_size: int | None = BEAM_SIZE
    length_penalty: float | None = option(
        "Exponent of the length normalisation; default: as in the preset.",
    )


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """Sizes of the model that replace the preset's."""

    PANEL: ClassVar[str] = "Size (default: the preset's)"

    vocabulary_size: int | None = option("Subwords of both languages together.", min=5)
    num_layers: int | None = option(
        "Encoder blocks, and decoder blocks.", None, "--layers", min=1
    )
    hidden_dim: int | None = option(
        "Width of embeddings and layers.", None, "--width", min=1
    )
    intermediate_dim: int | None = option(
        "Width of feed-forward sub-layers.", None, "--feed-forward", min=1
    )
    num_heads: int | None = option(
        "Heads of every attention layer.", None, "--heads", min=1
    )


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """Size, rate and end of updates that replace the preset's."""

    PANEL: ClassVar[str] = "Training (default: the preset's)"

    batch_tokens: int | None = option("Source and target positions of a batch.", min=1)
    learning_rate: float | None = option(
        "Highest rate (1e-3) of a linear rise and an inverse square-root decay.",
        min=TINY,
    )
    warmup_steps: int | None = option("Updates of that rise (1000).", min=1)
    patience: int | None = option(
        "Stop after so many validations without a better one.", min=1
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = option(
        "auto: the faster one on this machine.", "auto"
    )


def import_modules(modules: Sequence[str] | None) -> None:
    """Imports TensorFlow, and then the modules that the user names.

    Raises:
        ValueError: one of them cannot be imported.
    """
    import_tensorflow()
    for module in modules or ():
        import_named("--import", module)


def check_output_file(path: Path | None) -> None:
    """Checks that a file can be written.

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


def check_output_folder(name: str, path: Path) -> None:
    """Checks that a folder exists or can be created.

    Args:
        name: the option.
        path: its value.

    Raises:
        OSError: it is a file, within a file, or within a read-only folder.
    """
    nearest = next(here for here in (path, *path.absolute().parents) if here.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(
            f"`{name}` must be a folder, and {nearest} is a file. Received: {path}"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(
            f"No permission to write into {nearest}. Received: {path}"
        )
