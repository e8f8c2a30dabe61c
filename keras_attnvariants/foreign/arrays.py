"""Arrays of a foreign file of weights, and which of them were asked for."""

from collections.abc import Mapping

import numpy as np


class ForeignArrays:
    """Arrays by name, as float32.

    Args:
        arrays: the arrays.
        file: name of their file, for messages.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], file: str) -> None:
        self._arrays, self._file = arrays, file
        self._left = set(arrays)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, *names: str) -> np.ndarray:
        """The array that has one of these names; the other names are copies of it.

        Raises:
            ValueError: there is none, or it is not one of finite floats.
        """
        self._left.difference_update(names)
        found = [name for name in names if name in self._arrays]
        if not found:
            raise ValueError(
                f"{self._file} must have {names[0]}, with the layers that its "
                "configuration names. Received: a file without"
            )
        array = self._arrays[found[0]]
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(
                f"{self._file} must have finite floats. Received: {found[0]}, "
                f"{array.dtype}"
            )
        return array.astype("float32")

    def check_all_taken(self) -> None:
        """Raises `ValueError` if there are arrays that nobody asked for."""
        if self._left:
            first, *others = sorted(self._left)
            more = f" and {len(others)} more" if others else ""
            raise ValueError(
                f"{self._file} has weights of layers that this package does not have. "
                f"Received: {first}{more}"
            )
