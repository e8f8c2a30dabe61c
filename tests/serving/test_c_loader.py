"""Exports in programs without Python: TensorFlow's C API answers as Python does."""

import subprocess
import sys
from pathlib import Path

import pytest

from keras_attnvariants.serving.graphs import read_saved_model

LOADER = Path(__file__).with_name("c_loader.py")


@pytest.mark.slow
def test_the_c_api_translates_as_python_does(exported, server, texts):
    path, texts = exported["hc-sa"], [*texts[:5], ""]
    [graph] = read_saved_model(path).meta_graphs
    signature = graph.signature_def["serving_default"]
    names = signature.inputs["text"].name, signature.outputs["translations"].name
    done = subprocess.run(
        [sys.executable, "-I", LOADER, path, *names, *texts],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = server.call(path, "serving_default", text=texts)["translations"]
    assert done.stdout.split("\n")[:-1] == expected.tolist()
