"""Checks of the arguments of a search: each raises `ValueError` in one line."""

from typing import Any

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer


def check_lengths(min_length: Any, max_length: Any, model_max_length: int) -> None:
    """Raises `ValueError` unless the lengths make sense together."""
    check_integer("min_length", min_length, minimum=0)
    check_optional_integer("max_length", max_length)
    longest = model_max_length if max_length is None else max_length
    if longest > model_max_length:
        raise ValueError(
            f"`max_length` must be at most that of the model ({model_max_length}). "
            f"Received: {max_length}"
        )
    if min_length >= longest:
        raise ValueError(
            f"`min_length` must be below {longest}, because it does not count EOS. "
            f"Received: {min_length}"
        )
