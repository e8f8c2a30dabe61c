"""Checks of a model's arguments, beyond types."""

from typing import Any


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises `ValueError` unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}. Received: {value!r}")


def check_token_ids(vocabulary_size: int, **ids: int) -> None:
    """Raises `ValueError` unless the special tokens are in the vocabulary."""
    for name, value in ids.items():
        if not 0 <= value < vocabulary_size:
            raise ValueError(
                f"`{name}` must be the id of one of {vocabulary_size} tokens. "
                f"Received: {value}"
            )


def check_length(name: str, length: Any, limit: int) -> None:
    """Raises `ValueError` if a statically known length exceeds `limit`."""
    if isinstance(length, int) and length > limit:
        raise ValueError(
            f"`{name}` must not exceed {limit} positions, the most there are. "
            f"Received: {length}"
        )
