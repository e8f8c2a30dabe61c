"""Drawings that need no trained model are redrawn."""

import importlib

import pytest
from PIL import Image

from tests.docs import pages


@pytest.mark.parametrize("name", ["distance_biases", "overview"])
def test_a_drawing_is_a_picture(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(pages.DOCS))
    path = tmp_path / f"{name}.png"
    importlib.import_module(name).main(path)
    with (
        Image.open(path) as drawn,
        Image.open(pages.DOCS / "pictures" / path.name) as kept,
    ):
        assert drawn.size == kept.size
        assert len(drawn.convert("L").getcolors()) > 5
