"""Figures on paper."""

import pytest


@pytest.fixture
def scale(benchmark):
    return benchmark("scale")


def test_a_ring_sends_almost_everything_twice(scale):
    two, many = (scale.Machine(devices, 1.0, 10.0) for devices in (2, 1000))
    assert scale.exchange_seconds(100, two) == 10.0
    assert scale.exchange_seconds(100, many) == pytest.approx(20, rel=2e-3)


def test_large_batches_are_more_efficient_and_models_slower(scale):
    sizes = {"base": scale.BASE, "big": scale.BIG}
    small = {name: {**size, "num_layers": 1} for name, size in sizes.items()}
    models = {name: scale.built("base", size) for name, size in small.items()}
    rows = scale.machine_rows(models)
    assert len(rows) == 2 * len(scale.MACHINES) * len(scale.BATCHES)
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert first["efficiency"] < second["efficiency"] < 1
    base, big = rows[0], rows[len(rows) // 2]
    assert base["machine"] == big["machine"]
    assert base["minutes of an epoch"] < big["minutes of an epoch"]
