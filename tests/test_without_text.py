"""Without tensorflow-text, all works but texts within graphs; Windows has none.

What else Windows lacks is taken away in the process too: two modules, some names of
`os`, and opening a folder or from a folder on. This is no test on Windows.
"""

import subprocess
import sys

import pytest

LIKE_WINDOWS = """
import os, shutil, sys
import sacrebleu  # its locks are others on Windows

os.environ["KERAS_BACKEND"] = "tensorflow"
sys.modules.update({"fcntl": None, "resource": None, "tensorflow_text": None})
for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "pwrite", "sched_getaffinity"):
    delattr(os, name)
open_file = os.open


def open_on_windows(path, *args, dir_fd=None, **kwargs):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return open_file(path, *args, **kwargs)


os.open = open_on_windows
shutil._use_fd_functions = False  # nor does Windows remove folders by descriptors
"""

ZOO = """
import numpy as np
import keras
import keras_attnvariants as kav

assert len(kav.presets.list()) > 100
attention = kav.HardCodedAttention(num_heads=2, offsets=(-1, 0))
model = kav.Transformer(20, 1, 8, 16, attention, attention, kav.DotProductAttention(2))
ids = np.array([[5, 6, 7, 3], [8, 9, 3, 0]])
model.compile(
    "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
)
model.fit({"source_ids": ids, "target_ids": ids}, ids, verbose=0)
kav.beam_search(model, ids, beam_size=2, max_length=5)
kav.save_model(model, "saved")
kav.save_model(model, "saved")
weights = zip(model.weights, kav.load_model("saved")[0].weights, strict=True)
assert all(np.array_equal(one, two) for one, two in weights)
translator = kav.Translator.from_preset("kav/hc-sa/tatoeba-en-de")
assert translator(["Where is the station?"]) == ["Wo ist der Bahnhof?"]
"""

REST = """
import importlib, pkgutil
from importlib import metadata
from pathlib import Path
from typer.testing import CliRunner
import keras_attnvariants
from keras_attnvariants.cli import app
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.utils.locks import lock_folder

for module in pkgutil.walk_packages(keras_attnvariants.__path__, "keras_attnvariants."):
    if not module.name.endswith(("__main__", "mlserver_runtime")):
        importlib.import_module(module.name)


def kav(*arguments):
    return CliRunner().invoke(app, arguments)


def version_without_text(name, version=metadata.version):
    if name == "tensorflow-text":
        raise metadata.PackageNotFoundError(name)
    return version(name)


metadata.version = version_without_text
with lock_folder(Path("locked")):
    pass
assert peak_mib() >= 0
assert kav("presets").exit_code == 0
doctor = kav("doctor").stdout
assert doctor.endswith("All is well.\\n") and "not installed; for texts in" in doctor
refused = kav("export", "--model", "kav/hc-sa/tatoeba-en-de", "--output", "exported")
assert refused.exit_code == 2
assert "pip install 'tensorflow-text==" in refused.stderr.splitlines()[-1]
"""


@pytest.mark.slow  # a process each, in which TensorFlow is imported
@pytest.mark.parametrize("rest", [ZOO, REST], ids=["zoo", "rest"])
def test_what_needs_no_tensorflow_text(rest, tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIKE_WINDOWS + rest],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
