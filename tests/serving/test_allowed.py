"""Operators that SavedModels may have."""

import tensorflow as tf

from keras_attnvariants.backend.onednn import OPERATOR
from keras_attnvariants.serving.allowed import COMPUTING
from keras_attnvariants.serving.allowed import ONEDNN_OPERATORS
from keras_attnvariants.serving.allowed import RESTORING
from keras_attnvariants.serving.allowed import SAVING
from keras_attnvariants.serving.operators import PYTHON_OPERATORS

FILES = {"MatchingFiles", "ReadFile", "SaveV2", "WholeFileReaderV2", "WriteFile"}


def test_all_are_operators_of_tensorflow_itself():
    for name in (COMPUTING | RESTORING | SAVING) - ONEDNN_OPERATORS:
        assert hasattr(tf.raw_ops, name), name


def test_none_reaches_a_file_or_python():
    assert not COMPUTING & (FILES | PYTHON_OPERATORS | {"RestoreV2", "Save", "Restore"})


def test_the_operator_of_onednn_is_the_one_that_is_allowed():
    assert ONEDNN_OPERATORS == {OPERATOR}
