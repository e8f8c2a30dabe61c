"""TensorFlow is imported without its greeting and without unused packages."""

import gc
import importlib
import os
import subprocess
import sys

import pytest

from keras_attnvariants.utils import importing
from keras_attnvariants.utils.importing import keras_backend
from keras_attnvariants.utils.importing import lean_imports


def test_tensorflow_without_its_greeting():
    code = (
        "from keras_attnvariants.utils.importing import import_tensorflow as do; do()"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (run.stdout, run.stderr) == (b"", b"")


@pytest.mark.parametrize(
    ("features", "set_before", "expected"),
    [
        (["AVX2"], None, "1"),
        (["AVX2"], "0", "0"),
        (["AVX2", "AVX512", "AVX512-VNNI"], None, None),
        ([], None, None),
    ],
)
def test_onednn_multiplies_where_tensorflow_leaves_it_off(
    features, set_before, expected, monkeypatch
):
    class Imported(Exception):
        """In the place of the import, which reads the variable."""

    def do_import():
        raise Imported

    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", set_before or "")
    if set_before is None:
        monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr(importing, "processor_features", lambda: features)
    monkeypatch.setattr(importing, "lean_imports", do_import)
    with pytest.raises(Imported):
        importing.import_tensorflow()
    assert os.environ.get("TF_ENABLE_ONEDNN_OPTS") == expected


def test_modules_that_are_not_used_can_be_imported_later(monkeypatch):
    monkeypatch.setattr(importing, "UNUSED", ("wave", "sys"))
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    with pytest.raises(KeyError), lean_imports():
        with pytest.raises(ImportError):
            importlib.import_module("wave")
        assert importlib.import_module("sys") is sys
        raise KeyError
    assert importlib.import_module("wave").__name__ == "wave"


def test_what_is_imported_is_not_searched_for_garbage():
    before = gc.get_freeze_count()
    try:
        with lean_imports():
            assert not gc.isenabled()
            kept = [[] for _ in range(1000)]
        assert gc.get_freeze_count() >= before + len(kept)
        assert gc.isenabled()
    finally:
        gc.unfreeze()


def test_the_backend_is_known_before_keras(monkeypatch, tmp_path):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert keras_backend() == "tensorflow"
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert keras_backend() == "jax"
    (tmp_path / "keras.json").write_text("no json")
    assert keras_backend() == "tensorflow"
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert keras_backend() == "jax"


@pytest.mark.slow  # starts a process with TensorFlow and JAX
def test_tensorflow_without_what_is_not_used():
    code = (
        "import sys\n"
        "from keras_attnvariants.utils.importing import import_tensorflow\n"
        "import_tensorflow()\n"
        "import keras\n"
        "unused = {'jax', 'matplotlib', 'sklearn'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)\n"
        "import matplotlib.pyplot\n"
        "import jax\n"
    )
    environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
