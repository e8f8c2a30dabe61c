"""Where a model is served, in one string: for command lines and settings."""

import re
from typing import Any

_PLACE = re.compile(
    r"(?P<address>(?:[a-z]+://)?[^/]+)/(?P<model>[^/:@]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/]+))?"
)


def parse_place(place: str) -> dict[str, Any]:
    """The arguments of a `Client` for a place.

    Args:
        place: address and model, with a version or label if any: `host:port/en-de`,
            `http://host:port/en-de/versions/2`, `host:port/en-de/labels/stable`.

    Raises:
        ValueError: it is something else.

    >>> parse_place("localhost:8500/en-de/labels/stable")
    {'address': 'localhost:8500', 'model': 'en-de', 'label': 'stable'}
    """
    found = _PLACE.fullmatch(place)
    if not found:
        raise ValueError(
            "A served model is host:port/model, with /versions/N or /labels/NAME if "
            f"it shall not be the newest version. Received: {place}"
        )
    parts: dict[str, Any] = {k: v for k, v in found.groupdict().items() if v}
    if "version" in parts:
        parts["version"] = int(parts["version"])
    return parts
