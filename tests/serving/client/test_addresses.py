"""Addresses of models on servers, in one string."""

import pytest

from keras_attnvariants.serving import Client
from keras_attnvariants.serving.client.exchange import parse_place
from keras_attnvariants.serving.client.exchange import split_address


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("localhost:8500/en-de", ("localhost:8500", "en-de", None, None)),
        ("grpcs://a.b:443/m", ("grpcs://a.b:443", "m", None, None)),
        ("http://h:1/m/versions/12", ("http://h:1", "m", 12, None)),
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
    with pytest.raises(ValueError, match="Received: http://host:1$"):
        parse_place("http://me:se/cret@host:1")


@pytest.mark.parametrize(
    "address",
    ["h:99999", "h:0", "grpc://h:99999", "http://h:99999", "dns:///h:99999", "h:x"],
)
def test_impossible_ports_are_refused(address):
    with pytest.raises(ValueError, match=f"port up to 65535.*Received: {address}$"):
        Client(address, "m")


@pytest.mark.parametrize("scheme", ["", "grpc://", "grpcs://", "dns:///", "ftp://"])
def test_passwords_that_grpc_cannot_send_are_refused_and_not_shown(scheme):
    with pytest.raises(ValueError, match="without a password") as raised:
        Client(f"{scheme}me:secret@h:1", "m")
    assert "secret" not in str(raised.value)


def test_anything_but_a_url_is_refused():
    with pytest.raises(ValueError, match="`address` is not a URL") as raised:
        Client("http://me:secret@h:1/\x1b", "m")
    assert "\x1b" not in str(raised.value) and "secret" not in str(raised.value)


@pytest.mark.parametrize("address", ["dns:///h:8500", "ipv4:///127.0.0.1:8500"])
def test_names_that_grpc_resolves_are_left_to_it(address):
    assert split_address(address)[1] == address
