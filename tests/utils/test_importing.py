"""TensorFlow comes without its greeting, and without Keras where that is not needed."""

import subprocess
import sys


def test_tensorflow_without_its_greeting():
    code = (
        "from keras_attnvariants.utils.importing import import_tensorflow as do; do()"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (run.stdout, run.stderr) == (b"", b"")


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
