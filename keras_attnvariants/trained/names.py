"""Names of trained models, and the folders that they stand for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_attnvariants.utils.checks import did_you_mean
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import MANIFEST

if TYPE_CHECKING:
    from keras_attnvariants.data import LoadedModel

# Models in the package; the folder of each has its name.
MODELS = Path(__file__).parent / "models"
CARD = "card.json"
# States the model that an adapter belongs to.
ADAPTER = "adapter.json"
# Used by commands that need a model and are given none.
DEFAULT_MODEL = "kav/hc-sa/tatoeba-en-de"


def model_names() -> list[str]:
    """The names of the trained models that the package contains."""
    found = MODELS.glob(f"*/*/*/{MANIFEST}")
    return sorted(path.parent.relative_to(MODELS).as_posix() for path in found)


def find_model(name: str | os.PathLike[str], argument: str = "name") -> Path:
    """The folder of a model.

    Args:
        name: a folder; the name of a model that the package contains, see
            `model_names`; or the address of one on a hub, `hf://user/name`, with
            `@revision` for one other than the newest, or
            `kaggle://owner/model/keras/variation`, with `/version`. A model on a hub is
            downloaded into a cache.
        argument: name of the argument or option, for messages.

    Raises:
        FileNotFoundError: there is no such model; the message lists the nearest names.
        ValueError: an address is wrong, or the package for its hub is not installed.
        FetchError: the hub does not give the model.
    """
    if os.path.exists(name):
        return Path(name)
    text = os.fspath(name)
    if "://" in text:
        # Imported here: names are found without NumPy.
        from keras_attnvariants.trained.hubs import download

        return download(text)
    known = model_names()
    if text in known:
        return MODELS / text
    raise FileNotFoundError(
        f"`{argument}` must be a folder that exists, the name of a trained model or an "
        f"address that begins with hf:// or kaggle://. {did_you_mean(text, known)} "
        f"Received: {text!r}"
    )


def read_card(folder: Path) -> dict[str, Any]:
    """The content of the card of a model; empty for a model without a card.

    Raises:
        DamagedFolderError: the card is not what it should be.
    """
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    return card if isinstance(card, dict) else {}


def load_model(name: str | os.PathLike[str]) -> "LoadedModel":
    """Loads a trained model by its name, or what `save_model` wrote by its folder.

    For the folder of an adapter, which a run with LoRA writes, it loads the model that
    the adapter belongs to and applies the changes. That model must be where it was.

    No code from a folder or a hub is run: a configuration only builds known layers, and
    every file must match the sha256 that is stored beside it.

    Args:
        name: a name or a folder, see `find_model`; for a run, `best/` or `averaged/`.

    Returns:
        A `LoadedModel`, that is `(model, tokenizer)`. The model is not compiled, and
        its class is the one that was saved.

    Raises:
        FileNotFoundError: there is no such model, the folder is not one of a model, or
            the model of an adapter is not there.
        ValueError: a file is not the one that was saved, the weights belong to a
            model of other sizes, some of them are not finite, or an adapter belongs to
            another model.
        FetchError: a hub does not give the model.
    """
    # Imported here: names are found without Keras.
    from keras_attnvariants.data import model_folders
    from keras_attnvariants.trained.adapters import load_adapted

    folder = find_model(name)
    is_adapter = (folder / ADAPTER).is_file()
    return load_adapted(folder) if is_adapter else model_folders.load_model(folder)
