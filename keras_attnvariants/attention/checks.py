"""Checks of what attention layers are given."""


def check_positive(name: str, value) -> int:
    """Returns `value` if it is a positive integer, else raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer. Received: {value!r}")
    return value


def check_optional(name: str, value) -> int | None:
    """The same for an argument that may be `None`."""
    return None if value is None else check_positive(name, value)


def check_lengths(layer, query, value, alternative: str) -> None:
    """Raises if query and value of self-attention are known to differ in length.

    Args:
        layer: the layer that was called.
        query: `[B, T, width]`.
        value: `[B, S, value width]`.
        alternative: the variant to use instead.
    """
    lengths = query.shape[1], value.shape[1]
    if None not in lengths and lengths[0] != lengths[1]:
        raise ValueError(
            f"{type(layer).__name__} is self-attention: `query` and `value` must have "
            f"the same length; {alternative} takes two. Received: lengths {lengths}"
        )
