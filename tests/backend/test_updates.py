"""Updates from several batches against those of one, and Adam against that of Keras."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.backend import accumulating_train_function
from keras_attnvariants.backend import updates
from keras_attnvariants.training import LabelSmoothedCrossEntropy
from keras_attnvariants.training import Perplexity
from keras_attnvariants.training import TokenCount
from keras_attnvariants.training.losses import token_weights
from keras_attnvariants.training.optimizers import Adam
from keras_attnvariants.training.state import to_arrays

UPDATES, BATCHES, TOKENS = 3, 3, 12


def batches():
    """Batches of three sentences of unequal lengths; their widths are unequal too."""
    random = np.random.default_rng(6)
    for number in range(UPDATES * BATCHES):
        ids = random.integers(1, TOKENS, (3, 2 + 3 * (number % BATCHES)), "int32")
        for row, cut in zip(ids, random.integers(1, ids.shape[1] + 1, 3), strict=True):
            row[cut:] = 0
        yield ids


def examples(ids):
    return {"ids": 5 * ids % TOKENS}, ids, (ids != 0).astype("float32")


def large_batches():
    ids = [np.pad(part, ((0, 0), (0, 8 - part.shape[1]))) for part in batches()]
    for first in range(0, len(ids), BATCHES):
        yield np.concatenate(ids[first : first + BATCHES])


class Count(keras.Model):
    def __init__(self, dtype):
        super().__init__(dtype=dtype)
        self.embedding = keras.layers.Embedding(TOKENS, 4, dtype=dtype)
        self.dense = keras.layers.Dense(TOKENS, dtype=dtype)

    def call(self, inputs):
        return self.dense(self.embedding(inputs["ids"]))


def trained(
    data,
    count=None,
    jit_compile=True,
    dtype="float32",
    scale=None,
    batches=BATCHES,
    parts=1,
):
    """Weights and log after training on batches, or on some of them at a time.

    Args:
        data: batches of ids.
        count: as for `accumulating_train_function`.
        jit_compile: whether XLA compiles the update.
        dtype: policy of the model.
        scale: first factor of the loss in float16, if not that of Keras.
        batches, parts: as for `accumulating_train_function`.
    """
    keras.utils.set_random_seed(3)
    model = Count(dtype)
    model(examples(np.ones((1, 2), "int32"))[0])
    model.compile(
        # So that rounding is not magnified where a gradient is nearly 0.
        Adam(0.1, epsilon=1e-3, global_clipnorm=0.05),
        loss=LabelSmoothedCrossEntropy(0.1),
        weighted_metrics=[Perplexity(), TokenCount()],
        jit_compile=jit_compile,
    )
    model.optimizer.build(model.trainable_variables)
    if scale is not None:
        model.optimizer.dynamic_scale.assign(scale)
    if count is not None:
        model.train_function = accumulating_train_function(model, batches, count, parts)
    log = model.fit(
        (examples(ids) for ids in data),
        steps_per_epoch=UPDATES,
        shuffle=False,
        verbose=0,
    ).history
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    log["updates"] = int(inner.iterations)
    log["scale"] = getattr(model.optimizer, "dynamic_scale", None)
    return to_arrays(model.weights), log


def tokens(labels, weights):
    return ops.sum(token_weights(labels, 0, weights))


def distance(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def large():
    return trained(large_batches())


@pytest.mark.parametrize("jit_compile", [True, False])
def test_equals_the_large_batch(large, jit_compile):
    weights, log = trained(batches(), tokens, jit_compile)
    assert distance(weights, large[0]) < 2e-6
    assert log["tokens"] == large[1]["tokens"]
    assert log["updates"] == large[1]["updates"] == UPDATES


@pytest.mark.parametrize("jit_compile", [True, False])
def test_float16_makes_the_same_updates_with_a_scaled_loss(large, jit_compile):
    options = {"jit_compile": jit_compile, "dtype": "mixed_float16"}
    weights, log = trained(batches(), tokens, **options)
    assert 1e-6 < distance(weights, large[0]) < 5e-3
    assert log["updates"] == UPDATES and float(log["scale"]) == 2.0**15


# Nine rows in parts of unequal sizes; with one row in each; with parts without rows.
@pytest.mark.parametrize("parts", [2, 9, 12])
def test_parts_make_the_update_of_the_whole_batch(large, parts):
    options = {"jit_compile": False, "batches": 1, "parts": parts}
    weights, log = trained(large_batches(), tokens, **options)
    assert distance(weights, large[0]) < 2e-6
    for name in ("tokens", "loss", "perplexity"):
        np.testing.assert_allclose(log[name], large[1][name], rtol=1e-6)
    assert log["updates"] == UPDATES


def test_parts_of_padding_do_not_count(large):
    batches = [np.pad(ids, ((0, 9), (0, 0))) for ids in large_batches()]
    options = {"jit_compile": False, "batches": 1, "parts": 4}
    weights, log = trained(batches, tokens, **options)
    assert distance(weights, large[0]) < 2e-6
    np.testing.assert_allclose(log["loss"], large[1]["loss"], rtol=1e-6)


def test_parts_of_several_batches(large):
    weights, _ = trained(batches(), tokens, jit_compile=False, parts=2)
    assert distance(weights, large[0]) < 2e-6


@pytest.mark.skipif(backend.name() != "tensorflow", reason="threads of TensorFlow")
@pytest.mark.parametrize(
    ("of_operator", "operators", "jit_compile", "expected"),
    [
        ("1", None, False, 4),
        ("1", "3", False, 3),
        ("1", "64", False, 8),
        ("1", "1", False, 1),
        ("1", None, True, 1),
        ("2", None, False, 1),
        (None, None, False, 1),
    ],
)
def test_parts_are_as_many_as_operators_with_one_thread(
    monkeypatch, of_operator, operators, jit_compile, expected
):
    monkeypatch.setattr(updates, "cores", lambda: 4)
    variables = {"INTRA": of_operator, "INTER": operators}
    for kind, value in variables.items():
        monkeypatch.delenv(f"TF_NUM_{kind}OP_THREADS", raising=False)
        if value is not None:
            monkeypatch.setenv(f"TF_NUM_{kind}OP_THREADS", value)
    model = Count("float32")
    model.compile(jit_compile=jit_compile)
    assert backend.parallel_parts(model) == expected


def test_an_update_whose_gradients_overflow_is_skipped():
    """The first loss scale is too large for two of three updates."""
    options = {"jit_compile": False, "dtype": "mixed_float16"}
    weights, log = trained(batches(), tokens, scale=2.0**127, **options)
    assert all(np.isfinite(array).all() for array in weights)
    assert log["updates"] < UPDATES and float(log["scale"]) < 2.0**127


class TwoReplicas:
    """A strategy of TensorFlow on two devices."""

    num_replicas_in_sync = 2
    scope = contextlib.nullcontext


@pytest.mark.skipif(backend.name() != "tensorflow", reason="a strategy of TensorFlow")
def test_replicas_of_tensorflow_are_refused(monkeypatch):
    import tensorflow as tf

    monkeypatch.setattr(tf.distribute, "get_strategy", TwoReplicas)
    with pytest.raises(ValueError, match="averages the mean losses of its replicas"):
        accumulating_train_function(Count("float32"), BATCHES, len)


def test_the_mean_over_batches_is_another_update(large):
    """The batches as `gradient_accumulation_steps` of Keras' optimizers takes them."""
    weights, _ = trained(batches(), lambda labels, weights: 1.0)
    assert distance(weights, large[0]) > 1e-3


SETTINGS = {"learning_rate": 0.03, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}
START = np.array([[1.0, -2.0, 0.5]], "float32")


def gradients():
    return np.random.default_rng(0).normal(size=(5, *START.shape)).astype("float32")


def updated(optimizer, mode="eager"):
    """A variable and all of the optimizer's after five updates."""
    variable = keras.Variable(START)
    optimizer.build([variable])

    def update(gradient):
        optimizer.apply([gradient])

    if mode != "eager":
        import tensorflow as tf

        update = tf.function(update, jit_compile=mode == "xla")
    for gradient in gradients():
        update(ops.array(gradient))
    return [np.array(v) for v in (variable, *optimizer.variables)]


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}, {"global_clipnorm": 0.5}])
def test_equals_keras(mode, options):
    if backend.name() != "tensorflow" and mode != "eager":
        pytest.skip("JAX updates by functions without state")
    expected = updated(keras.optimizers.Adam(**SETTINGS, **options))
    for found, wanted in zip(
        updated(Adam(**SETTINGS, **options), mode), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-7)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has it")
def test_an_update_is_one_operation():
    import tensorflow as tf

    variable, optimizer = keras.Variable(START), Adam(**SETTINGS)
    optimizer.build([variable])
    apply = tf.function(lambda gradient: optimizer.apply([gradient]))
    graph = apply.get_concrete_function(tf.TensorSpec(START.shape)).graph
    kinds = [operation.type for operation in graph.get_operations()]
    assert kinds.count("ResourceApplyAdam") == 1 and "Sqrt" not in kinds


@pytest.mark.skipif(backend.name() == "tensorflow", reason="Keras has none there")
def test_updates_without_state_are_those_of_keras():
    def stateless(optimizer):
        variable = keras.Variable(START)
        optimizer.build([variable])
        others = [v.value for v in optimizer.variables]
        gradient = ops.array(gradients()[0])
        (found,), _ = optimizer.stateless_apply(others, [gradient], [variable.value])
        return ops.convert_to_numpy(found)

    expected = stateless(keras.optimizers.Adam(**SETTINGS))
    np.testing.assert_array_equal(stateless(Adam(**SETTINGS)), expected)


def test_only_tensorflow_has_it():
    variable = keras.Variable(START)
    assert backend.has_adam(variable) == (backend.name() == "tensorflow")
