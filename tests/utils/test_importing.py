"""TensorFlow comes without its greeting, and without Keras where that is not needed."""

import importlib
import os
import subprocess
import sys

import pytest

from keras_attnvariants.utils.importing import hidden
from keras_attnvariants.utils.importing import keras_backend


def test_tensorflow_without_its_greeting():
    code = (
        "from keras_attnvariants.utils.importing import import_tensorflow as do; do()"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (run.stdout, run.stderr) == (b"", b"")


def test_hidden_modules_can_be_imported_later(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    with pytest.raises(KeyError), hidden(("wave", "sys")):
        with pytest.raises(ImportError):
            importlib.import_module("wave")
        assert importlib.import_module("sys") is sys
        raise KeyError
    assert importlib.import_module("wave").__name__ == "wave"


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


def test_tensorflow_without_keras_which_comes_when_it_is_needed():
    code = (
        "import sys\n"
        "from keras_attnvariants.utils.importing import import_tensorflow_alone\n"
        "import_tensorflow_alone()\n"
        "assert 'tensorflow' in sys.modules\n"
        "assert not any(name.split('.')[0] == 'keras' for name in sys.modules)\n"
        "from keras_attnvariants.serving.saved import SavedTranslator\n"
        "assert 'keras' not in sys.modules\n"
        # The library of operators that was loaded alone is also that of the package.
        "from keras_attnvariants.serving import text_operators\n"
        "text_operators.register_text_operators()\n"
        "assert 'tensorflow_text' not in sys.modules\n"
        "from keras_attnvariants import Tokenizer\n"
        "tokenizer = Tokenizer.train(['a b c d'], 9)\n"
        "ids = tokenizer.tf_tokenizer().tokenize(['a b']).to_list()\n"
        "assert ids == tokenizer.encode(['a b'])\n"
        "import tensorflow as tf\n"
        "assert tf.keras.optimizers.SGD and sys.modules['keras']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
