"""Kills by signal 9 at random moments, also while states are written; full disks."""

import random
import subprocess

import pytest

from tests.faults import full_disk
from tests.faults import kills
from tests.faults.server import STEPS
from tests.faults.server import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def server(forks, tmp_path_factory):
    return Server(forks, tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def undisturbed(server):
    return kills.finished(server)


def test_killed_runs_end_like_an_undisturbed_one(server, undisturbed):
    kills.kill(server, undisturbed, len(kills.MOMENTS), random.Random(8))


def test_killed_runs_with_options_end_like_an_undisturbed_one(forks, tmp_path):
    server = Server(forks, tmp_path, accumulate=3, ema=0.9)
    undisturbed = kills.finished(server)
    kills.kill(server, undisturbed, len(kills.MOMENTS), random.Random(2))


def test_killed_from_outside(server, undisturbed):
    for seconds in (0.5, 1.5, 2.5):
        assert server(f"after {seconds}") in (-9, 0)
    assert server("finish") == 0
    kills.check(server, undisturbed)


def test_terminated_run_exits_with_143_and_resumes(server, undisturbed):
    assert server(f"terminate {STEPS // 3}") == 143
    assert server("finish") == 0
    kills.check(server, undisturbed)


@pytest.mark.parametrize("kilobytes", [300, 1000, 2000])
def test_full_disk(server, undisturbed, kilobytes):
    """Disks fill up in the first state, in the first validation and later."""
    size = kilobytes << 10
    try:
        with full_disk.mounted(server.folder / "run", size) as free_space:
            full_disk.train(server, size, undisturbed, free_space)
    except subprocess.CalledProcessError:
        pytest.skip("mounting a small file system needs more rights")
