"""Saving a model, with its tokenizer, as one folder that loads anywhere."""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import h5py
import keras

CONFIG = "config.json"
WEIGHTS = "model.weights.h5"
TOKENIZER = "tokenizer.model"
MANIFEST = "manifest.json"


def save_preset(model: keras.Model, directory, tokenizer: Any = None) -> Path:
    """Writes a model to a folder: configuration, weights, tokenizer, checksums.

    The folder appears complete or not at all: it is written under a temporary
    name beside its place and then renamed. Loss, metrics and optimizer are not
    part of it.

    Args:
        model: a registered Keras model.
        directory: where to; a folder of that name is replaced.
        tokenizer: object with `model_bytes`, or `None`.

    Returns:
        The folder.
    """
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        config = keras.saving.serialize_keras_object(model)
        config.pop("build_config", None)
        config.pop("compile_config", None)
        (draft / CONFIG).write_text(json.dumps(config, indent=2) + "\n", "utf-8")
        save_weights(model, draft / WEIGHTS)
        if tokenizer is not None:
            (draft / TOKENIZER).write_bytes(tokenizer.model_bytes)
        checksums = {path.name: sha256(path) for path in sorted(draft.iterdir())}
        (draft / MANIFEST).write_text(json.dumps(checksums, indent=2) + "\n", "utf-8")
        draft.chmod(0o755)
        replace_folder(draft, directory)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return directory


def save_weights(model: keras.Model, path: Path) -> None:
    """Writes the weights of a model, without those of its optimizer."""
    optimizer = getattr(model, "optimizer", None)
    model.optimizer = None
    try:
        model.save_weights(path)
    finally:
        model.optimizer = optimizer


def from_preset(directory) -> keras.Model:
    """Loads a model that `save_preset` wrote.

    Raises:
        FileNotFoundError: the folder is not a saved model.
        ValueError: a file is not the one that was saved, or the weights belong
            to another model.
    """
    directory = Path(directory)
    check_manifest(directory)
    config = json.loads((directory / CONFIG).read_text("utf-8"))
    model = keras.saving.deserialize_keras_object(config, safe_mode=True)
    try:
        model.load_weights(directory / WEIGHTS)
        check_count(directory / WEIGHTS, len(model.weights))
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"The weights in {directory} do not fit the configuration beside them. "
            f"Received: {error}"
        ) from error
    return model


def check_count(path: Path, expected: int) -> None:
    """Raises unless a weights file has as many arrays as the model has weights.

    Keras passes over arrays that a model has no place for.
    """
    arrays = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: arrays.append(isinstance(item, h5py.Dataset)))
    if sum(arrays) != expected:
        raise ValueError(f"{sum(arrays)} arrays for {expected} weights")


def check_manifest(directory: Path) -> None:
    """Raises unless every file of a saved model is there and unchanged."""
    if not (directory / MANIFEST).is_file():
        raise FileNotFoundError(
            f"A saved model is a folder with {MANIFEST}, {CONFIG} and {WEIGHTS}. "
            f"Received: {directory}"
        )
    for name, expected in read_manifest(directory).items():
        path = directory / name
        if os.path.basename(name) != name or not path.is_file():
            raise FileNotFoundError(f"{directory} lacks a file. Received: {name!r}")
        if sha256(path) != expected:
            raise ValueError(
                f"{path} is not the file that was saved (its sha256 differs). "
                f"Received: {directory}"
            )


def read_manifest(directory: Path) -> dict[str, str]:
    """The checksums of a saved model's files, by name."""
    text = (directory / MANIFEST).read_text("utf-8")
    try:
        checksums = json.loads(text)
        complete = {CONFIG, WEIGHTS} <= set(checksums)
    except (ValueError, TypeError):
        complete = False
    if not complete:
        raise ValueError(
            f"{directory / MANIFEST} must give the sha256 of {CONFIG} and {WEIGHTS}. "
            f"Received: {text[:80]!r}"
        )
    return checksums


def replace_folder(draft: Path, target: Path) -> None:
    """Renames `draft` to `target`, moving an older `target` out of the way."""
    if not target.exists():
        draft.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    target.rename(old / target.name)
    draft.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def sha256(path: Path) -> str:
    """The hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
