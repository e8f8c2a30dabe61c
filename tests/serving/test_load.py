"""A server under load, disturbed; `python -m tests.faults.serving_load` does more."""

import shutil

import pytest

from tests.faults import serving_load
from tests.faults.serving import MODEL
from tests.faults.serving import ServerProcess
from tests.faults.serving_fuzz import PredictWire
from tests.faults.serving_fuzz import fuzz

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def disturbed(exported, tmp_path_factory):
    """A server in a process of its own."""
    folder = tmp_path_factory.mktemp("disturbed")
    shutil.copytree(exported["hc-sa"], folder / "1")
    with ServerProcess(folder) as server:
        yield server


def test_200_clients_lose_nothing(disturbed, texts):
    load = serving_load.undisturbed(disturbed, texts[:100], clients=200, seconds=5)
    assert len(load.seconds) >= 200


def test_rubbish_is_answered_and_neighbours_do_not_change(disturbed, texts):
    translate = PredictWire(disturbed.address, MODEL, timeout=30)
    fuzz(translate, texts, strings=300, seed=7)


def test_new_versions_appear_without_a_failure_and_damaged_ones_are_left(
    disturbed, texts
):
    serving_load.versions_appear(disturbed, texts[:100], clients=20, seconds=4)


def test_a_killed_server_costs_patient_clients_nothing(disturbed, texts):
    serving_load.killed(disturbed, texts[:100], clients=20, seconds=6)
