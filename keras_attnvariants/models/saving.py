"""Model folders: a model and its tokenizer, saved as one folder."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from keras_attnvariants.backend import local_values
from keras_attnvariants.backend.private import weights_file
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.models.sizes import check_sizes
from keras_attnvariants.models.sizes import contents
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import read_manifest
from keras_attnvariants.utils.folders import restore

CONFIG = "config.json"
WEIGHTS = "model.weights.h5"
TOKENIZER = "tokenizer.model"


class LoadedModel(NamedTuple):
    """What `load_model` returns.

    Attributes:
        model: the model.
        tokenizer: its tokenizer, or `None` if the folder has none.
    """

    model: keras.Model
    tokenizer: Tokenizer | None


def save_model(
    model: keras.Model,
    folder: str | os.PathLike[str],
    tokenizer: Tokenizer | None = None,
) -> Path:
    """Writes a model folder: configuration, weights, tokenizer, checksums.

    The folder appears complete or not at all, and every file of it is flushed to the
    disk. Loss, metrics and optimizer are not saved.

    Args:
        model: a model whose classes are registered with Keras, as all of this
            package are.
        folder: where to; a folder of that name is replaced.
        tokenizer: the tokenizer that the model was trained with.

    Returns:
        The folder.

    Raises:
        OSError: it could not be written. A folder that was there before stays.

    Example:

    >>> import tempfile
    >>> import keras_attnvariants as kav
    >>> attention = kav.DotProductAttention(num_heads=2)
    >>> model = kav.Transformer(20, 1, 8, 16, attention, attention, attention)
    >>> folder = kav.save_model(model, tempfile.mkdtemp() + "/model")
    >>> kav.load_model(folder).model.count_params() == model.count_params()
    True
    """
    folder = Path(folder)
    config = keras.saving.serialize_keras_object(model)
    config.pop("build_config", None)
    config.pop("compile_config", None)
    with new_folder(folder) as writer:
        writer.write_json(CONFIG, config)
        # Made in memory: HDF5 crashes when the disk is full.
        with local_values(model):
            writer.write_bytes(WEIGHTS, weights_file(model))
        if tokenizer is not None:
            writer.write_bytes(TOKENIZER, tokenizer.model_bytes)
    return folder


def load_model(folder: str | os.PathLike[str]) -> LoadedModel:
    """Loads what `save_model` wrote.

    Args:
        folder: a model folder, such as `best/` or `averaged/` of a training run.

    Returns:
        A `LoadedModel`, that is `(model, tokenizer)`. The model is not compiled, and
        its class is the one that was saved.

    Raises:
        FileNotFoundError: the folder is not a model folder.
        ValueError: a file is not the one that was saved, the weights belong to a
            model of other sizes, or some of them are not finite.
    """
    folder = Path(folder)
    restore(folder)
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"`folder` must be a model folder, with {MANIFEST}, {CONFIG} and "
            f"{WEIGHTS}. Received: {folder}"
        )
    check_folder(folder, required=(CONFIG, WEIGHTS))
    tokenizer = load_tokenizer(folder)
    model = build_model(folder)
    with fitting(folder):
        model.load_weights(folder / WEIGHTS)
        check_weights(model, folder / WEIGHTS)
    return LoadedModel(model, tokenizer)


def build_model(folder: Path) -> keras.Model:
    """The model of a folder with new weights, unless it is larger than the saved ones.

    Raises:
        ValueError: it is larger, or the configuration is not that of a model.
    """
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise DamagedFolderError(f"{CONFIG} describes no model. Received: {folder}")
    try:
        with fitting(folder):
            check_sizes(config, folder / WEIGHTS)
        return keras.saving.deserialize_keras_object(config, safe_mode=True)
    except RecursionError as error:
        raise DamagedFolderError(
            f"{CONFIG} is nested too deeply. Received: {folder}"
        ) from error


@contextlib.contextmanager
def fitting(folder: Path) -> Iterator[None]:
    """Context in which an error means that weights and configuration do not fit."""
    try:
        yield
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"The weights in {folder} do not fit the configuration beside them. "
            f"Received: {error}"
        ) from error


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of a model folder that was checked, or `None` if it has none.

    Raises:
        ValueError: there is one that the manifest does not list, or it is no
            tokenizer.
    """
    path = folder / TOKENIZER
    if TOKENIZER in read_manifest(folder):
        return Tokenizer.load(path)
    if path.exists():
        raise DamagedFolderError(
            f"{TOKENIZER} is not listed in {MANIFEST}, so it was not saved with the "
            f"model: remove it, or save the model with it. Received: {folder}"
        )
    return None


def check_weights(model: keras.Model, path: Path) -> None:
    """Raises unless a model has all arrays of its weights file, of finite numbers.

    Keras ignores arrays that a model has no place for.
    """
    arrays, _ = contents(path)
    if arrays != len(model.weights):
        raise ValueError(f"{arrays} arrays for {len(model.weights)} weights")
    for weight in model.weights:
        if "float" in weight.dtype:
            values = keras.ops.convert_to_numpy(weight)
            if not np.isfinite(values).all():
                raise ValueError(f"{weight.path} has values that are not finite")
