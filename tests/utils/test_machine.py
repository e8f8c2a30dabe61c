"""The machine, its packages, the environment of processes, and the fastest function."""

import itertools
import os
from pathlib import Path

import keras
import pytest

from keras_attnvariants.utils.machine import check_extra
from keras_attnvariants.utils.machine import cores
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import processor
from keras_attnvariants.utils.machine import shared_machine
from keras_attnvariants.utils.machine import shortest_seconds
from keras_attnvariants.utils.machine import versions


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_the_processor_has_the_name_that_linux_gives(monkeypatch):
    text = "processor : 0\nmodel name\t: A Processor @ 2 GHz\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert processor() == "A Processor @ 2 GHz"


def test_hardware_is_described_in_words():
    found = hardware()
    assert found["cores"] == str(cores())
    assert found["devices"] == ", ".join(keras.distribution.list_devices())
    assert all(isinstance(value, str) for value in found.values())


def test_missing_packages_are_named_with_the_command_that_installs_them():
    with pytest.raises(ValueError, match="It needs no_such and none_such") as error:
        check_extra("It", "tune", ("json", "no_such", "none_such"))
    assert str(error.value).endswith("pip install 'keras_attnvariants[tune]'")
    check_extra("It", "tune", ("json",))


def test_versions_are_those_of_installed_packages():
    assert versions(("keras", "no-such-package")) == {"keras": keras.__version__}


def test_functions_take_turns_after_a_first_call():
    ticks = itertools.count()
    calls = []

    def slow_at_times():
        calls.append("slow")
        for _ in range(5 * (len(calls) < 4)):
            next(ticks)

    found = shortest_seconds(
        {"slow": slow_at_times, "fast": lambda: calls.append("fast")},
        clock=lambda: next(ticks),
        rounds=2,
    )
    assert calls == ["slow", "fast"] * 3
    assert found == {"slow": 1, "fast": 1}


@pytest.mark.parametrize(("limit", "calls"), [(0, 2), (3, 2), (4, 3)])
def test_no_round_begins_after_the_limit(limit, calls):
    ticks = itertools.count()
    made = []
    # A round takes three ticks: one before, one after, and one for the limit.
    shortest_seconds(
        {"one": lambda: made.append(1)}, lambda: next(ticks), rounds=9, limit=limit
    )
    assert len(made) == calls


def test_variables_hold_for_a_while_unless_they_are_set(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "theirs")
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    with shared_machine(1):
        assert os.environ["OMP_NUM_THREADS"] == "theirs"
        assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert os.environ["OMP_NUM_THREADS"] == "theirs"
    assert "TF_FORCE_GPU_ALLOW_GROWTH" not in os.environ


@pytest.mark.parametrize(
    ("processes", "threads", "of_operator", "number"),
    [(2, None, "1", "2"), (8, None, "1", "1"), (2, 3, "1", "3"), (2, 16, "16", "16")],
)
def test_processes_share_the_cores(
    processes, threads, of_operator, number, monkeypatch
):
    names = [f"TF_NUM_{kind}_THREADS" for kind in ("INTRAOP", "INTEROP")]
    names.append("OMP_NUM_THREADS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("keras_attnvariants.utils.machine.cores", lambda: 4)
    with shared_machine(processes, threads):
        assert [os.environ[name] for name in names] == [of_operator, number, number]
    assert not any(name in os.environ for name in names)
