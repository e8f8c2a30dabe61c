"""The benchmarks as modules."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of benchmarks are slow: they run programs that few people change."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def benchmark(monkeypatch) -> Callable:
    """Imports a module of the benchmarks as a script there would."""
    names = [path.stem for path in BENCHMARKS.glob("*.py")]
    for name in names:  # folders of tests have some of these names
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("COLUMNS", "200")
    policy = keras.config.dtype_policy()
    yield importlib.import_module
    keras.config.set_dtype_policy(policy)
    for name in names:
        sys.modules.pop(name, None)
