"""Addresses of servers, and of models on them."""

import re
from typing import Any
from urllib.parse import urlsplit

_SCHEMES = ("", "grpc", "grpcs", "http", "https")
_PLACE = re.compile(
    r"(?P<address>(?:[a-z]+://)?[^/]+)/(?P<model>[^/:@]+)"
    r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/]+))?"
)


def parse_place(place: str) -> dict[str, Any]:
    """The arguments of a `Client` for a model on a server, given in one string.

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
            "it shall not be the newest version. Received: "
            f"{without_password(place)}"
        )
    parts: dict[str, Any] = {k: v for k, v in found.groupdict().items() if v}
    if "version" in parts:
        parts["version"] = int(parts["version"])
    return parts


def without_password(address: str) -> str:
    """An address for messages, without user and password."""
    return re.sub(r"^([a-z]+://)?.*@", r"\1", address)


def check_address(address: str) -> tuple[str, str]:
    """The scheme of an address, or `""`, and its target for gRPC.

    Raises:
        ValueError: it has no host, an impossible port, or a password that gRPC cannot
            send.
    """
    scheme, _, target = address.rpartition("://")
    if scheme not in _SCHEMES:
        return scheme, address  # a kind of name that gRPC resolves
    try:
        parts = urlsplit(f"//{target}")
        is_wrong = not parts.hostname or parts.port == 0
    except ValueError:
        is_wrong = True
    if is_wrong or ("@" in target and not scheme.startswith("http")):
        raise ValueError(
            "`address` must be host:port, or http://host:port, with a port up to "
            f"65535 and without a password over gRPC. Received: "
            f"{without_password(address)}"
        )
    return scheme, target
