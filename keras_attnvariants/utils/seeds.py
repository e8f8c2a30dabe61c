"""Seeds of random numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_attnvariants.utils.checks import check_integer


def check_seed(name: str, value: Any) -> int:
    """`value` if it is an integer from 0 to `2**31 - 1`.

    Raises:
        ValueError: it is not.
    """
    if check_integer(name, value, minimum=0) < 2**31:
        return int(value)
    raise ValueError(f"`{name}` must be below 2^31. Received: {value}")


def seeds_of_texts(seed: int | Sequence[int], count: int) -> np.ndarray:
    """One seed for each of `count` texts, int32, drawn from a single one if need be.

    Raises:
        ValueError: there is a list of another length.
    """
    if isinstance(seed, int):
        return np.random.default_rng(seed).integers(2**31, size=count, dtype=np.int32)
    if len(seed) != count:
        raise ValueError(
            f"`seed` must be one, or one for each text ({count}). "
            f"Received: {len(seed)} seeds"
        )
    return np.asarray(seed, dtype=np.int32)
