"""Model folders: a model and its tokenizer, saved as one folder."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import h5py
import keras

from keras_attnvariants.backend.private import weights_file
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
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
        ValueError: a file is not the one that was saved, or the weights belong to
            another model.
    """
    folder = Path(folder)
    restore(folder)
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"`folder` must be a model folder, with {MANIFEST}, {CONFIG} and "
            f"{WEIGHTS}. Received: {folder}"
        )
    check_folder(folder, required=(CONFIG, WEIGHTS))
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    model = keras.saving.deserialize_keras_object(config, safe_mode=True)
    try:
        model.load_weights(folder / WEIGHTS)
        check_count(folder / WEIGHTS, len(model.weights))
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"The weights in {folder} do not fit the configuration beside them. "
            f"Received: {error}"
        ) from error
    tokenizer = folder / TOKENIZER
    return LoadedModel(
        model, Tokenizer.load(tokenizer) if tokenizer.is_file() else None
    )


def check_count(path: Path, expected: int) -> None:
    """Raises unless a weights file has as many arrays as the model has weights.

    Keras ignores arrays that a model has no place for.
    """
    arrays: list[bool] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: arrays.append(isinstance(item, h5py.Dataset)))
    if sum(arrays) != expected:
        raise ValueError(f"{sum(arrays)} arrays for {expected} weights")
