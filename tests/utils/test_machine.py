"""What is told of the machine."""

import os
from pathlib import Path

import keras

from keras_attnvariants.utils.machine import cores
from keras_attnvariants.utils.machine import hardware
from keras_attnvariants.utils.machine import processor


def test_cores_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_the_processor_has_the_name_that_linux_tells(monkeypatch):
    text = "processor : 0\nmodel name\t: A Processor @ 2 GHz\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert processor() == "A Processor @ 2 GHz"


def test_hardware_is_told_in_texts():
    found = hardware()
    assert found["cores"] == str(cores())
    assert found["devices"] == ", ".join(keras.distribution.list_devices())
    assert all(isinstance(value, str) for value in found.values())
