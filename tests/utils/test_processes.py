"""Processes have the environment that they are given, and print no greeting."""

import multiprocessing
import os
import pickle

import pytest

from keras_attnvariants.utils.processes import call_quietly
from keras_attnvariants.utils.processes import environment
from keras_attnvariants.utils.processes import shared_machine


def print_sizes(*numbers: int) -> None:
    """Needs TensorFlow, and prints to the file itself."""
    import tensorflow as tf

    os.write(1, f"{tf.reduce_sum(numbers)}".encode())


def test_variables_hold_for_a_while_unless_they_are_set(monkeypatch):
    monkeypatch.setenv("SET_BEFORE", "theirs")
    with environment(SET_BEFORE="ours", NOT_SET_BEFORE="ours"):
        assert os.environ["SET_BEFORE"] == "theirs"
        assert os.environ["NOT_SET_BEFORE"] == "ours"
    assert os.environ["SET_BEFORE"] == "theirs"
    assert "NOT_SET_BEFORE" not in os.environ


@pytest.mark.parametrize(
    ("processes", "threads", "number"), [(2, None, "2"), (8, None, "1"), (2, 3, "3")]
)
def test_processes_share_the_cores(processes, threads, number, monkeypatch):
    names = [f"TF_NUM_{kind}_THREADS" for kind in ("INTRAOP", "INTEROP")]
    names.append("OMP_NUM_THREADS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("keras_attnvariants.utils.processes.cores", lambda: 4)
    with shared_machine(processes, threads):
        assert [os.environ[name] for name in names] == [number] * 3
    assert not any(name in os.environ for name in names)


def test_a_process_prints_what_its_function_prints(capfd):
    process = multiprocessing.get_context("spawn").Process(
        target=call_quietly, args=(pickle.dumps(print_sizes), 1, 2)
    )
    process.start()
    process.join()
    assert capfd.readouterr() == ("3", "")
