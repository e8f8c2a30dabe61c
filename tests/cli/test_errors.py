"""What is wrong with the input is one line; what is wrong with us is not hidden."""

import subprocess
import sys

import pytest
import typer

from keras_attnvariants.cli.errors import clear_errors
from keras_attnvariants.cli.errors import one_line


@pytest.mark.parametrize("kind", [ValueError, OSError, FloatingPointError])
def test_errors_become_one_line(kind, capsys):
    with pytest.raises(typer.Exit) as stop, clear_errors():
        raise kind("first line,\n  second. Received: 3")
    assert stop.value.exit_code == 2
    assert capsys.readouterr().err == "Error: first line, second. Received: 3\n"


@pytest.mark.parametrize("kind", [KeyError, TypeError, BrokenPipeError])
def test_mistakes_of_ours_keep_their_traceback(kind):
    with pytest.raises(kind), clear_errors():
        raise kind("bug")


def test_one_line():
    assert one_line("  a\n b\tc ") == "a b c"


def test_tensorflow_without_keras_which_comes_when_it_is_needed():
    code = (
        "import sys\n"
        "from keras_attnvariants.cli.errors import import_tensorflow_alone\n"
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
