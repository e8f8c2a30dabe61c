"""Checks of token ids and lengths that models share."""

from keras_attnvariants.utils.typing import Size


def check_token_ids(vocabulary_size: int, **ids: int) -> None:
    """Raises `ValueError` unless the special tokens are in the vocabulary.

    Args:
        vocabulary_size: number of tokens.
        **ids: ids by the names of the arguments.
    """
    for name, value in ids.items():
        if not 0 <= value < vocabulary_size:
            raise ValueError(
                f"`{name}` must be the id of one of {vocabulary_size} tokens. "
                f"Received: {value}"
            )


def check_length(name: str, length: Size | None, limit: int) -> None:
    """Raises `ValueError` if a length is statically known and exceeds `limit`."""
    if isinstance(length, int) and length > limit:
        raise ValueError(
            f"`{name}` must be at most {limit}, the number of positions. "
            f"Received: {length}"
        )
