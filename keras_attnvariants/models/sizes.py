"""Sizes of models that are built without their arrays, and limits on them."""

import math
import random
from collections.abc import Callable
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import keras

# Numbers in a table of positions that no weights file accounts for.
LARGEST_TABLE = 1 << 24


def without_arrays(build: Callable[[], keras.Model]) -> keras.Model:
    """A model whose weights have names and shapes, and no values.

    Args:
        build: builds the model; it is called in another thread, which does not see
            scopes of custom objects.
    """

    def stateless() -> keras.Model:
        with keras.StatelessScope(initialize_variables=False):
            return build()

    # The seeds that layers draw would change the seeds of whatever is built next.
    state = random.getstate()
    try:
        # Keras lists variables without values, to give them some when it next leaves a
        # scope of this kind. Its list is the thread's and disappears with the thread.
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(stateless).result()
    finally:
        random.setstate(state)


def check_sizes(config: dict[str, Any], weights: Path) -> None:
    """Raises before a model is built that is larger than its weights file.

    Args:
        config: what `keras.saving.serialize_keras_object` returned for the model.
        weights: its weights file.

    Raises:
        ValueError: the configuration asks for more than the file holds, or the file
            for more than its length.
        RecursionError: the configuration is nested too deeply.
    """
    arrays, held = contents(weights)
    for name, value in integers(config):
        if "layers" in name and value > arrays:
            raise ValueError(f"`{name}` is {value:,}, and there are {arrays} arrays")
    largest = dict(sorted(integers(config)))
    table = largest.get("max_length", 1) * largest.get("hidden_dim", 1)
    if table > max(held, LARGEST_TABLE):
        raise ValueError(
            f"`max_length` times `hidden_dim` is {table:,}, over {LARGEST_TABLE:,}"
        )
    asked = parameters(config)
    # Two numbers of a model in 4 bits are one of the file.
    if asked is not None and asked > 2 * held:
        raise ValueError(f"{asked:,} parameters, and {held:,} numbers in the file")


def contents(weights: Path) -> tuple[int, int]:
    """How many arrays a weights file holds, and how many numbers.

    Raises:
        ValueError: arrays are longer than the file.
        OSError: it is no HDF5 file.
    """
    found: list[h5py.Dataset | h5py.Group] = []
    with h5py.File(weights) as file:
        file.visititems(lambda _, item: found.append(item))
        arrays = [item for item in found if isinstance(item, h5py.Dataset)]
        size = sum(array.nbytes for array in arrays)
        if size > weights.stat().st_size:
            raise ValueError(f"arrays of {size:,} bytes in a file that is shorter")
        return len(arrays), sum(math.prod(array.shape) for array in arrays)


def parameters(config: dict[str, Any]) -> int | None:
    """Number of parameters of a model; `None` if it cannot be built without arrays."""
    names = {value for name, value in entries(config) if name == "registered_name"}
    known = {name: keras.saving.get_registered_object(name) for name in names}
    known = {name: found for name, found in known.items() if found is not None}
    # Quantizing would need values.
    inner = {k: v for k, v in config["config"].items() if k != "quantization"}

    def build() -> keras.Model:
        with keras.saving.CustomObjectScope(known):
            return keras.saving.deserialize_keras_object({**config, "config": inner})

    try:
        return without_arrays(build).count_params()
    except (RecursionError, MemoryError):
        raise
    except Exception:
        # What is wrong, building the model itself says better.
        return None


def integers(config: Any) -> Iterator[tuple[str, int]]:
    """Names and values of all integers in a configuration."""
    for name, value in entries(config):
        if isinstance(value, int):
            yield name, value


def entries(config: Any) -> Iterator[tuple[str, Any]]:
    """Names and values in a configuration, at any depth."""
    if isinstance(config, dict):
        for name, value in config.items():
            yield name, value
            yield from entries(value)
    elif isinstance(config, list):
        for value in config:
            yield from entries(value)
