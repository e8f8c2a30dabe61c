"""Adapters: small folders with the changes that LoRA made to a model."""

import hashlib
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_attnvariants.data.model_folders import LoadedModel
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.models.transfer import by_path
from keras_attnvariants.trained.names import ADAPTER
from keras_attnvariants.trained.names import find_model
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import read_npz
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.records import read_record

MATRICES = "adapter.npz"


@dataclass(frozen=True)
class Adapter:
    """The settings of an adapter.

    Attributes:
        model: name or address of the model that it belongs to, or its folder, relative
            to that of the adapter.
        sha256: digest of the weights of that model, see `weights_sha256`.
        rank: largest rank of the change of a matrix.
        preset: name of the preset of the model, or `""`.
    """

    model: str
    sha256: str
    rank: int
    preset: str


def weights_sha256(model: keras.Model) -> str:
    """Digest of the weights of a model, in their order."""
    digest = hashlib.sha256()
    for weight in model.weights:
        array = keras.ops.convert_to_numpy(weight)
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def save_adapter(
    folder: Path, model: keras.Model, tuned: keras.Model, settings: Adapter
) -> None:
    """Writes the differences of two models as products of two matrices each.

    The product of `A [I, rank]` and `B [rank, O]` is the best approximation of that
    rank to the change of a matrix `[I, O]`. After LoRA of that rank, it equals the
    change.

    Args:
        folder: folder to write; an existing one is replaced.
        model: the model that the adapter belongs to.
        tuned: the same model after training; only its matrices differ.
        settings: settings of the adapter.

    Raises:
        OSError: it could not be written.
    """
    arrays: dict[str, Any] = {}
    before = by_path(model.weights)
    for path, weight in by_path(tuned.weights).items():
        values = keras.ops.convert_to_numpy(weight).astype("float64")
        added = values - keras.ops.convert_to_numpy(before[path])
        if added.any():
            left, sizes, right = np.linalg.svd(added, full_matrices=False)
            roots = np.sqrt(sizes[: settings.rank])
            arrays[f"{path}/A"] = (left[:, : roots.size] * roots).astype("float32")
            arrays[f"{path}/B"] = (roots[:, None] * right[: roots.size]).astype(
                "float32"
            )
    with new_folder(folder) as writer:
        writer.write_json(ADAPTER, asdict(settings))
        with writer.open(MATRICES) as file:
            np.savez(file, **arrays)


def read_adapter(folder: Path) -> Adapter:
    """The settings of an adapter, with a model path that is not relative to it.

    Raises:
        DamagedFolderError: a file of it is not what was written.
    """
    check_folder(folder, (ADAPTER, MATRICES))
    found = read_record(folder / ADAPTER, Adapter)
    beside = folder / found.model
    is_folder = "://" not in found.model and beside.is_dir()
    return replace(found, model=str(beside.resolve())) if is_folder else found


def load_adapted(folder: Path) -> LoadedModel:
    """The model that an adapter belongs to, with the changes of the adapter.

    Raises:
        FileNotFoundError: the model no longer exists.
        ValueError: its weights are not those that the adapter belongs to, or a file is
            not the one that was saved.
        FetchError: a hub does not give the model.
    """
    settings = read_adapter(folder)
    loaded = load_model(find_model(settings.model, f"model of the adapter {folder}"))
    if (found := weights_sha256(loaded.model)) != settings.sha256:
        raise ValueError(
            f"An adapter belongs to one model, that of sha256 {settings.sha256:.12}…. "
            f"Received: {folder} for {settings.model}, with {found:.12}…"
        )
    weights = by_path(loaded.model.weights)
    arrays = read_npz(folder / MATRICES)
    for path in sorted({name.rpartition("/")[0] for name in arrays}):
        try:
            weight, left = weights[path], arrays[f"{path}/A"]
            right = arrays[f"{path}/B"]
            # Before the product, which a crafted file could make too large.
            if (left.shape[0], *right.shape[1:]) != tuple(weight.shape):
                raise ValueError(f"it is {left.shape} by {right.shape}")
            values = keras.ops.convert_to_numpy(weight) + left @ right
            if not np.isfinite(values).all():
                raise ValueError("it is not finite")
        except (KeyError, ValueError, IndexError) as error:
            raise DamagedFolderError(
                f"{MATRICES} has no product for {path!r} of the model ({error}). "
                f"Received: {folder}"
            ) from error
        weight.assign(values)
    return loaded
