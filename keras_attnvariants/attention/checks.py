"""Checks of what attention layers are given."""


def check_positive(name: str, value) -> int:
    """Returns `value` if it is a positive integer, else raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer. Received: {value!r}")
    return value


def check_optional(name: str, value) -> int | None:
    """The same for an argument that may be `None`."""
    return None if value is None else check_positive(name, value)


def check_position(position, slots) -> None:
    """Raises if a cache of `slots` positions is known to have none for this one."""
    if isinstance(position, int) and isinstance(slots, int) and position >= slots:
        raise ValueError(
            f"`position` must be below {slots}, the `max_length` that the state was "
            f"made for. Received: {position}"
        )


def check_memory(layer, memory) -> None:
    """Raises if cross-attention was not given what its `prepare` returned."""
    if memory is None:
        raise ValueError(
            f"`memory` is needed: {type(layer).__name__} looks at a source. "
            "Received: None"
        )


def check_lengths(layer, query, value) -> None:
    """Raises if self-attention is known to be given two lengths."""
    lengths = query.shape[1], value.shape[1]
    if "cross" in layer.roles or None in lengths or lengths[0] == lengths[1]:
        return
    raise ValueError(
        f"{type(layer).__name__} is self-attention: `query` and `value` must have the "
        f"same length. `keras_attnvariants.attention.variants('cross')` lists what "
        f"takes two. Received: lengths {lengths}"
    )
