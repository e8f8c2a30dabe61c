"""Addresses of models on servers, in one string."""

import pytest

from keras_attnvariants.serving import Client
from keras_attnvariants.serving.client.exchange import parse_place
from keras_attnvariants.serving.client.exchange import target_of


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("localhost:8500/en-de", ("localhost:8500", "en-de", None, None)),
        ("grpcs://a.b:443/m", ("grpcs://a.b:443", "m", None, None)),
        ("grpc://h:1/m/versions/12", ("grpc://h:1", "m", 12, None)),
        ("[::1]:8500/m/labels/stable", ("[::1]:8500", "m", None, "stable")),
    ],
)
def test_parts_of_a_place(place, expected):
    found = parse_place(place)
    names = ("address", "model", "version", "label")
    assert tuple(found.get(name) for name in names) == expected


@pytest.mark.parametrize(
    "place",
    ["", "localhost:8500", "localhost:8500/", "/m", "h:1/m/versions/x", "h:1/m/x"],
)
def test_anything_but_a_place_is_refused(place):
    with pytest.raises(ValueError, match="host:port/model"):
        parse_place(place)


def test_no_password_is_shown():
    with pytest.raises(ValueError, match="Received: grpc://host:1$"):
        parse_place("grpc://me:se/cret@host:1")


@pytest.mark.parametrize("address", ["h:99999", "h:0", "grpc://h:99999", "h:x", "h"])
def test_impossible_ports_are_refused(address):
    with pytest.raises(ValueError, match="`address` must be host:port"):
        Client(address, "m")


@pytest.mark.parametrize("scheme", ["", "grpc://", "grpcs://", "http://", "ftp://"])
def test_passwords_that_grpc_cannot_send_are_refused_and_not_shown(scheme):
    with pytest.raises(ValueError, match="without a password") as raised:
        Client(f"{scheme}me:secret@h:1", "m")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("address", ["http://h:1", "https://h:1", "dns:///h:1"])
def test_other_protocols_are_refused(address):
    with pytest.raises(ValueError, match=f"speaks gRPC alone. Received: {address}$"):
        parse_place(f"{address}/m") if address[:4] == "http" else Client(address, "m")


def test_targets_have_no_scheme():
    assert target_of("grpcs://h:8500") == target_of("h:8500") == "h:8500"
