"""Addresses of models on servers, in one string."""

import pytest

from keras_attnvariants.serving.client.exchange import parse_place


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
def test_what_is_no_place_is_refused(place):
    with pytest.raises(ValueError, match="host:port/model"):
        parse_place(place)


def test_no_password_is_shown():
    with pytest.raises(ValueError, match="Received: http://host:1$"):
        parse_place("http://me:se/cret@host:1")
