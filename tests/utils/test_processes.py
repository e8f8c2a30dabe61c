"""Processes have the environment that they are given, and print no greeting."""

import multiprocessing
import os
import pickle

from keras_attnvariants.utils.processes import call_quietly
from keras_attnvariants.utils.processes import environment


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


def test_a_process_prints_what_its_function_prints(capfd):
    process = multiprocessing.get_context("spawn").Process(
        target=call_quietly, args=(pickle.dumps(print_sizes), 1, 2)
    )
    process.start()
    process.join()
    assert capfd.readouterr() == ("3", "")
