"""Counting the operators of a decoding step in a saved graph."""

import tensorflow as tf

from keras_attnvariants.serving.counting import operators_per_step


def saved(path, function) -> None:
    """Saves a function of a float as a SavedModel."""
    function = tf.function(function, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(tf.Module(), str(path), {"serving_default": function})


def test_operators_of_called_functions_count_and_constants_do_not(tmp_path):
    twice = tf.function(lambda x: tf.tanh(tf.exp(x)))

    def body(i, x):
        return i + 1, twice(tf.identity(x)) + tf.constant(2.0)

    def loop(x):
        return {"y": tf.while_loop(lambda i, x: i < 3, body, (0, x))[1]}

    saved(tmp_path / "plain", loop)
    # i + 1 and the counter of the loop; Tanh, Exp and the sum.
    assert operators_per_step(tmp_path / "plain") == 5

    def nested(x):
        def outer(i, x):
            return i + 1, loop(x)["y"]

        return {"y": tf.while_loop(lambda i, x: i < 3, outer, (0, x))[1]}

    saved(tmp_path / "nested", nested)
    assert operators_per_step(tmp_path / "nested") == 5


def test_a_model_without_a_loop_has_no_steps(tmp_path):
    saved(tmp_path, lambda x: {"y": x + 1})
    assert operators_per_step(tmp_path) == 0
