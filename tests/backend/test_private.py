"""The private parts of other packages do what their functions say."""

import ast
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import h5py
import keras
import numpy as np
import pytest
from keras_tuner import HyperParameters
from keras_tuner import Objective
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.oracles import BayesianOptimizationOracle
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import keras_attnvariants as kav
from keras_attnvariants import backend
from keras_attnvariants.backend.private import adam_moments
from keras_attnvariants.backend.private import delay_end_of_jax_service
from keras_attnvariants.backend.private import forget_variables_without_values
from keras_attnvariants.backend.private import is_functional
from keras_attnvariants.backend.private import is_in_xla_context
from keras_attnvariants.backend.private import moving_averages
from keras_attnvariants.backend.private import nested_layers
from keras_attnvariants.backend.private import restart_draws
from keras_attnvariants.backend.private import score_of_statistics
from keras_attnvariants.backend.private import sentence_statistics
from keras_attnvariants.backend.private import weights_file
from keras_attnvariants.backend.private import weights_to_cast


@pytest.mark.skipif(backend.name() != "tensorflow", reason="a question to TensorFlow")
@pytest.mark.parametrize("xla", [False, True])
def test_xla_is_noticed_in_inner_graphs_too(xla):
    import tensorflow as tf

    found = []

    def body(i):
        found.append(is_in_xla_context())
        return i + 1

    def function(x):
        found.append(is_in_xla_context())
        return tf.while_loop(lambda i: i < 2, body, (x,))

    backend.jit(function, xla=xla)(tf.constant(0))
    assert set(found) == {xla} and len(found) >= 2
    assert not is_in_xla_context()


def test_layers_are_found_at_any_depth_once_each():
    class Outer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = keras.Sequential([keras.layers.Dense(2)])
            self.listed = [self.inner, keras.layers.Dropout(0.1)]

    outer = Outer()
    found = nested_layers(outer)
    assert len({id(layer) for layer in found}) == len(found)
    kinds = {type(layer).__name__ for layer in found}
    assert {"Outer", "Sequential", "Dense", "Dropout"} <= kinds


def test_functional_models_are_told_from_others():
    class Own(keras.Model):
        pass

    x = keras.Input((2,))
    assert is_functional(keras.Model(x, keras.layers.Dense(1)(x)))
    assert not is_functional(Own())
    assert not is_functional(keras.Sequential([keras.Input((2,))]))


@pytest.mark.parametrize(
    "layer, expected",
    [
        (keras.layers.EinsumDense("ab,bc->ac", 3, bias_axes="c"), {"kernel", "bias"}),
        (keras.layers.Embedding(3, 2), {"embeddings"}),
        (keras.layers.LayerNormalization(), set()),
    ],
)
def test_weights_that_are_cast_are_held_in_attributes(layer, expected):
    layer.build((None, 2))
    held = {vars(layer)[name].path for name in weights_to_cast(layer)}
    assert held == {getattr(layer, name).path for name in expected}


def test_a_release_without_private_parts_is_warned_of_once(monkeypatch):
    monkeypatch.delattr(keras.layers.Layer, "_flatten_layers")
    layer = keras.layers.Dropout(0.1)
    with pytest.warns(UserWarning, match="`nested_layers` of keras_attn") as told:
        warnings.simplefilter("default")
        assert nested_layers(layer) == nested_layers(layer) == [layer]
    assert len(told) == 1


def without(monkeypatch, module, name):
    """Takes a part of Keras away, as a release that renames it would."""
    monkeypatch.delattr(f"keras.src.{module}.{name}")


LACKING = pytest.mark.filterwarnings("ignore:Keras .* lack what:UserWarning")


@LACKING
def test_layers_at_any_depth_without_private_parts(monkeypatch):
    attention = kav.DotProductAttention(num_heads=2)
    model = kav.Transformer(20, 2, 8, 16, attention, attention, attention)
    expected = {id(layer) for layer in nested_layers(model)}
    without(monkeypatch, "layers", "Layer._flatten_layers")
    found = [id(layer) for layer in nested_layers(model)]
    assert len(found) == len(set(found)) and set(found) == expected


@LACKING
def test_moments_without_private_parts(monkeypatch):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    monkeypatch.delattr(optimizer, "_momentums")
    assert adam_moments(optimizer, model.trainable_variables[0]) is None


@LACKING
def test_questions_without_private_parts(monkeypatch):
    x = keras.Input((2,))
    model = keras.Model(x, keras.layers.Dense(1)(x))
    without(monkeypatch, "models", "Functional")
    assert is_functional(model) and not is_functional(keras.Sequential())
    without(monkeypatch, "backend.common", "global_state")
    forget_variables_without_values()


def test_forgotten_variables_get_no_values():
    with keras.StatelessScope(initialize_variables=False):
        variable = keras.Variable("ones", shape=(1,))
        forget_variables_without_values()
    assert variable._value is None


def test_the_service_of_jax_ends_later(monkeypatch):
    distributed = pytest.importorskip("jax._src.distributed")
    state = distributed.State()
    monkeypatch.setattr(distributed, "global_state", state)
    delay_end_of_jax_service(0.2)
    assert state.service is None  # a process other than 0
    events = []
    state.client = SimpleNamespace(shutdown=lambda: events.append(time.monotonic()))
    state.service = SimpleNamespace(shutdown=lambda: events.append(time.monotonic()))
    delay_end_of_jax_service(0.2)
    state.shutdown()
    signed_off, stopped = events
    assert stopped - signed_off >= 0.2


def test_weights_in_memory_are_those_that_keras_writes(tmp_path):
    def layers():
        return [keras.layers.Dense(3), keras.layers.BatchNormalization()]

    model = keras.Sequential([keras.Input((2,)), *layers()])
    model.compile(keras.optimizers.Adam(), "mse")
    model.optimizer.build(model.trainable_variables)
    optimizer = model.optimizer
    path = tmp_path / "memory.weights.h5"
    path.write_bytes(weights_file(model))
    assert model.optimizer is optimizer
    other = keras.Sequential([keras.Input((2,)), *layers()])
    other.load_weights(path)
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        assert (keras.ops.convert_to_numpy(mine == theirs)).all()
    other.save_weights(tmp_path / "keras.weights.h5")
    with h5py.File(path) as one, h5py.File(tmp_path / "keras.weights.h5") as two:
        names: list[list[str]] = [[], []]
        one.visit(names[0].append)
        two.visit(names[1].append)
    assert names[0] == names[1]


@pytest.mark.parametrize("metric", [BLEU(), CHRF(word_order=2), TER()])
def test_counts_of_sentences_add_up_to_the_score_of_a_corpus(metric):
    hypotheses = ["the cat sat on a mat", "dogs ran", "it was red"]
    references = ["the cat sat on the mat", "the dogs ran far", "it was blue"]
    counts = sentence_statistics(metric, hypotheses, [references])
    assert len(counts) == 3
    for chosen in ([0, 1, 2], [0, 0, 2]):
        expected = metric.corpus_score(
            [hypotheses[i] for i in chosen], [[references[i] for i in chosen]]
        )
        found = score_of_statistics(metric, counts[chosen].sum(0))
        assert found == pytest.approx(expected.score, abs=1e-9)


def test_moments_of_adam_are_found_by_their_variable():
    first, second = (keras.Variable([x, x]) for x in (1.0, 2.0))
    optimizer = keras.optimizers.Adam(0.1, beta_1=0.9, beta_2=0.99)
    optimizer.build([first, second])
    optimizer.apply([keras.ops.array([1.0, 1.0]), keras.ops.array([2.0, 2.0])])
    moments = [keras.ops.convert_to_numpy(m) for m in adam_moments(optimizer, second)]
    assert moments[0] == pytest.approx([0.2, 0.2])
    assert moments[1] == pytest.approx([0.04, 0.04])


def test_moving_averages_are_in_the_order_of_the_variables():
    variables = [keras.Variable([x]) for x in (1.0, 2.0)]
    optimizer = keras.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.build(variables)
    for _ in range(2):  # 0 and -1, 0 and -2
        optimizer.apply([keras.ops.array([1.0]), keras.ops.array([2.0])])
    averages = map(keras.ops.convert_to_numpy, moving_averages(optimizer))
    assert [x.item() for x in averages] == pytest.approx([-0.5, -1.0])


OLD_GRPC = pytest.mark.filterwarnings("ignore::DeprecationWarning")
LOSS = Objective("val_loss", "min")


def tuner_space():
    hyperparameters = HyperParameters()
    hyperparameters.Float("x", 0.0, 1.0)
    return hyperparameters


def end_trial(oracle, trial, loss):
    oracle.update_trial(trial.trial_id, {"val_loss": loss})
    trial.status = "COMPLETED"
    oracle.end_trial(trial)


@OLD_GRPC
def test_a_bayesian_oracle_draws_as_if_it_were_new(tmp_path):
    found = []
    for name in ("asked", "new"):
        options = {"hyperparameters": tuner_space(), "num_initial_points": 1, "seed": 5}
        oracle = BayesianOptimizationOracle(LOSS, 9, **options)
        assert isinstance(oracle._random_state, np.random.RandomState)
        BaseTuner(oracle, directory=tmp_path, project_name=name)
        for loss in (1.0, 2.0):
            end_trial(oracle, oracle.create_trial("a"), loss)
        if name == "asked":
            oracle.populate_space("2")
        restart_draws(oracle, 5)
        found.append(oracle.populate_space("2")["values"])
    assert found[0] == found[1]


# The methods of named tuples have an underscore, and are public.
NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}


def private_parts(tree: ast.Module) -> Iterator[str]:
    """Names with an underscore that a module reads, and its private imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if re.search(r"\.(_[a-z]\w*|src|python)\b", name):
                    yield name


def own_names(tree: ast.Module) -> Iterator[str]:
    """Names that a module defines, including those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # for `object.__setattr__`


def strays(folder: Path) -> list[str]:
    """The private parts of other packages in a folder, as lines of a report."""
    paths = [path for path in folder.rglob("*.py") if path.name != "private.py"]
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(paths)}
    own = {name for tree in trees.values() for name in own_names(tree)}
    return [
        f"{path.relative_to(folder)}: {part}"
        for path, tree in trees.items()
        for part in private_parts(tree)
        if part not in own | NAMED_TUPLES
    ]


def test_no_other_module_uses_private_parts_of_packages():
    assert strays(Path(kav.__file__).parent) == []


def test_a_private_part_elsewhere_is_found(tmp_path):
    (tmp_path / "module.py").write_text(
        "from keras.src import backend\n"
        "class Layer:\n"
        "    def _own(self):\n"
        "        return self._own() + self._flatten_layers()\n"
    )
    assert strays(tmp_path) == [
        "module.py: keras.src.backend",
        "module.py: _flatten_layers",
    ]
