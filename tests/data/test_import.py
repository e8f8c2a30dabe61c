import subprocess
import sys

import pytest

from keras_attnvariants import data


def test_tensorflow_is_imported_late():
    code = (
        "import sys; import keras_attnvariants.data as d; d.Tokenizer; d.load_corpus;"
        "print({'tensorflow', 'tensorflow_text'} & set(sys.modules))"
    )
    # On the JAX backend Keras itself does not need TensorFlow.
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"KERAS_BACKEND": "jax", "PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout.strip() == "set()"


def test_public_names_exist():
    assert all(getattr(data, name) for name in data._LATE)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        data.Nothing  # noqa: B018
