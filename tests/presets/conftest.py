"""Selects the tests of presets that run on both backends."""

from pathlib import Path

import pytest

from keras_attnvariants import backend

HERE = Path(__file__).parent


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leaves out the slow cases on JAX.

    A preset is a configuration, and its parameters are counted from shapes: neither
    knows the backend. The cases that stand for the others run on both.
    """
    if backend.name() != "jax":
        return
    left = [item for item in items if item.path.is_relative_to(HERE) and is_slow(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def is_slow(item: pytest.Item) -> bool:
    """Whether a test is marked as slow."""
    return item.get_closest_marker("slow") is not None
