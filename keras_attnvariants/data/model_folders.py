"""Model folders: a model and its tokenizer, saved as one folder."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
from packaging.version import Version

from keras_attnvariants import __version__
from keras_attnvariants.backend import local_values
from keras_attnvariants.backend.private import forget_variables_without_values
from keras_attnvariants.backend.private import start_with_zeros
from keras_attnvariants.backend.private import weights_file
from keras_attnvariants.data import packing
from keras_attnvariants.data.tasks import task_of
from keras_attnvariants.data.tokenizer import Tokenizer
from keras_attnvariants.models import templates
from keras_attnvariants.models.transfer import sums_in_float32
from keras_attnvariants.utils.files import DamagedFolderError
from keras_attnvariants.utils.files import file_entry
from keras_attnvariants.utils.files import read_file
from keras_attnvariants.utils.files import read_json
from keras_attnvariants.utils.folders import MANIFEST
from keras_attnvariants.utils.folders import check_folder
from keras_attnvariants.utils.folders import new_folder
from keras_attnvariants.utils.folders import read_manifest
from keras_attnvariants.utils.folders import restore

CONFIG = "config.json"
WEIGHTS = "model.weights.h5"
TOKENIZER = "tokenizer.model"

# No model exceeds these: the largest size in a configuration, and the most numbers that
# a size may need in memory (a table of positions, the state of a search) if the weights
# file has fewer.
LARGEST_SIZE = 1 << 20
LARGEST_STATE = 1 << 24

# What is wrong with a folder.
CANNOT_BUILD = f"{CONFIG} describes no model that can be built"
MISMATCH = f"{CONFIG} and the weights beside it do not fit"

# Arguments of Keras layers that name files to read if they are strings.
FILE_ARGUMENTS = ("vocabulary", "filepath")


class LoadedModel(NamedTuple):
    """A model and its tokenizer, as `load_model` returns them.

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
    *,
    packed: bool = False,
    extra_files: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Writes a model folder: configuration, weights, tokenizer, checksums.

    The folder appears complete or not at all, and every file of it is flushed to the
    disk. Loss, metrics and optimizer are not saved.

    Args:
        model: a model whose classes are registered with Keras, as all classes of this
            package are.
        folder: folder to write; an existing one is replaced.
        tokenizer: the tokenizer that the model was trained with.
        packed: whether to store matrices in 8 bits, for a quarter of the size. The
            loaded model has the nearest float32 weights, and computes in float32.
        extra_files: their contents by name, such as a `README.md` with the licence.

    Returns:
        The folder.

    Raises:
        OSError: it could not be written. An existing folder is kept.

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
    if packed:
        model = templates.with_policy(model, "float32")
    config = keras.saving.serialize_keras_object(model)
    config.pop("build_config", None)
    config.pop("compile_config", None)
    config["version"] = __version__
    with new_folder(folder) as writer:
        writer.write_json(CONFIG, config)
        # Made in memory: HDF5 crashes when the disk is full.
        with local_values(model), sums_in_float32(model):
            weights = weights_file(model)
        writer.write_bytes(WEIGHTS, packing.pack(weights) if packed else weights)
        if tokenizer is not None:
            writer.write_bytes(TOKENIZER, tokenizer.model_bytes)
        for name, data in extra_files.items():
            writer.write_bytes(name, data)
    return folder


def load_model(folder: str | os.PathLike[str]) -> LoadedModel:
    """Loads what `save_model` wrote.

    Args:
        folder: a model folder, such as `best/` or `averaged/` of a training run. It may
            be a link; its content may not.

    Returns:
        A `LoadedModel`, that is `(model, tokenizer)`. The model is not compiled, and
        its class is the one that was saved.

    Raises:
        FileNotFoundError: the folder is not a model folder.
        ValueError: a file is not the one that was saved, the weights belong to a
            model of other sizes, or some of them are not finite.
    """
    return read_model(Path(folder).resolve())


def read_model(folder: Path) -> LoadedModel:
    """Loads a model like `load_model`, from a folder that must not be a link."""
    restore(folder)
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"`folder` must be a model folder, with {MANIFEST}, {CONFIG} and "
            f"{WEIGHTS}. Received: {folder}"
        )
    read: list[bytes] = []

    def entry_of(path: Path, below: Path) -> dict[str, Any]:
        if path != folder / WEIGHTS:
            return file_entry(path, below)
        # Read once: what is loaded is what was checked.
        data = read_file(path, below)
        read.append(data)
        return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    check_folder(folder, (CONFIG, WEIGHTS), entry_of)
    tokenizer = load_tokenizer(folder)
    with folder_errors(folder, MISMATCH):
        weights = packing.unpack(read[0])
        arrays, numbers = packing.counts(weights)
    model = build_model(folder, arrays, numbers)
    with tempfile.TemporaryDirectory() as temporary:
        # Not the file in the folder, which may have changed since.
        copy = Path(temporary) / WEIGHTS
        try:
            copy.write_bytes(weights.getbuffer())
        except OSError as error:
            error.filename = str(copy)  # a full disk is an error without a name
            raise
        with folder_errors(folder, MISMATCH):
            model.load_weights(copy)
            # Keras ignores arrays that a model has no place for.
            if arrays != len(model.weights):
                raise ValueError(f"{arrays} arrays for {len(model.weights)} weights")
            for weight in model.weights:
                values = keras.ops.convert_to_numpy(weight)
                if "float" in weight.dtype and not np.isfinite(values).all():
                    raise ValueError(f"{weight.path} has values that are not finite")
    if tokenizer is not None:
        tokenizer = task_of(model).tokenizer(tokenizer)
    return LoadedModel(model, tokenizer)


def without_unset_options(config: Any) -> Any:
    """A configuration without unset options of initializers.

    Keras 3.15 writes them, even those that earlier releases do not know.
    """

    def replacement(part: Any) -> Any:
        if isinstance(part, dict) and part.get("module") == "keras.initializers":
            if isinstance(options := part.get("config"), dict):
                options = {name: v for name, v in options.items() if v is not None}
                return {**part, "config": options}
        return None  # to look inside

    return keras.tree.traverse(replacement, config)


def build_model(folder: Path, arrays: int, numbers: int) -> keras.Model:
    """Builds the model of a folder, without loading its weights.

    Its variables are allocated only once its size is known to fit the weights file.

    Args:
        folder: a model folder.
        arrays: number of arrays in its weights file.
        numbers: number of elements of all arrays.

    Raises:
        ValueError: the model is larger than that, or the configuration describes none.
    """
    config = read_json(folder / CONFIG, below=folder.parent)
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise DamagedFolderError(f"{CONFIG} describes no model. Received: {folder}")
    # Values must exist before they can be quantized.
    quantization = config["config"].pop("quantization", None)
    if quantization is not None:
        # The file packs two 4-bit numbers into one.
        numbers *= 2
    try:
        with folder_errors(folder, CANNOT_BUILD):
            check_config(config, arrays, numbers)
            with keras.StatelessScope(initialize_variables=False):
                model = templates.deserialize(without_unset_options(config))
            if not isinstance(model, keras.Model):
                raise TypeError(f"it is a {type(model).__name__}")
        with folder_errors(folder, MISMATCH):
            if model.count_params() > numbers:
                raise ValueError(
                    f"{model.count_params():,} parameters, and {numbers:,} numbers in "
                    "the file"
                )
        start_with_zeros(model.weights)
        with folder_errors(folder, CANNOT_BUILD), keras.StatelessScope():
            pass  # Keras gives all variables their arrays when it leaves this scope.
    finally:
        forget_variables_without_values()
    if quantization is not None:
        with folder_errors(folder, CANNOT_BUILD):
            model.quantize(quantization)
    return model


@contextlib.contextmanager
def folder_errors(folder: Path, problem: str) -> Iterator[None]:
    """Context that turns errors into one-line errors about a folder.

    Raises:
        DamagedFolderError: names the problem, the reason and the folder.
    """
    try:
        yield
    except RecursionError as error:
        raise DamagedFolderError(
            f"{CONFIG} is nested too deeply. Received: {folder}"
        ) from error
    # Layers raise errors of all kinds for invalid values.
    except Exception as error:
        is_wrapped = isinstance(error, TypeError)
        cause = templates.first_cause(error) if is_wrapped else error
        reason = " ".join(str(cause).split())[:500] + upgrade_advice(folder)
        raise DamagedFolderError(f"{problem} ({reason}). Received: {folder}") from error


def upgrade_advice(folder: Path) -> str:
    """Advice for a folder that a later version of the package wrote, else nothing."""
    with contextlib.suppress(ValueError, TypeError, KeyError, OSError):
        saved = read_json(folder / CONFIG)["version"]
        if Version(saved) > Version(__version__):
            return f"; version {saved} wrote it: pip install -U keras_attnvariants"
    return ""


def check_config(config: dict[str, Any], arrays: int, numbers: int) -> None:
    """Raises if building a layer would take long, need too much memory or read a file.

    A size must be that of an array in the weights file, or small: models keep vectors
    of their width for positions, and searches keep them for heads and windows of all
    hypotheses. Keras also refuses layers that read files, unless they are allowed.

    Args:
        config: the result of `keras.saving.serialize_keras_object` for the model.
        arrays: number of arrays in its weights file.
        numbers: number of elements of all arrays.
    """
    largest: dict[str, int] = {}
    for path, value in keras.tree.flatten_with_path(config):
        name = [part for part in path if isinstance(part, str)][-1]
        if isinstance(value, int):
            largest[name] = max(abs(value), largest.get(name, 0))
        elif isinstance(value, str) and path[-1] in FILE_ARGUMENTS:
            raise ValueError(
                f"`{name}` names the file {value!r}, and a model folder must not name "
                "files outside: save the model without this layer"
            )
    largest.pop("seed", None)
    width, beams = config["config"].get("hidden_dim"), largest.get("beam_size", 1)
    width = width if isinstance(width, int) else 1
    for name, value in largest.items():
        if value > LARGEST_SIZE:
            raise ValueError(f"`{name}` is {value:,}, over {LARGEST_SIZE:,}")
        if "layers" in name and value > arrays:
            raise ValueError(f"`{name}` is {value:,}, and there are {arrays} arrays")
        product, others = value * width, "`hidden_dim`"
        # The length of a search depends on its sources, not on `max_length`.
        if name != "max_length":
            product, others = product * beams, f"{others} and `beam_size`"
        if value * width > numbers and product > LARGEST_STATE:
            raise ValueError(
                f"`{name}` is {value:,}: times {others}, that is {product:,}, over "
                f"{LARGEST_STATE:,}"
            )


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of a model folder that was checked, or `None` if it has none.

    Raises:
        ValueError: the manifest does not list it, or it is no tokenizer.
    """
    path = folder / TOKENIZER
    if TOKENIZER in read_manifest(folder):
        return Tokenizer(read_file(path, below=folder.parent))
    if path.exists() or path.is_symlink():
        raise DamagedFolderError(
            f"{TOKENIZER} is not listed in {MANIFEST}, so it was not saved with the "
            f"model: remove it, or save the model with it. Received: {folder}"
        )
    return None
