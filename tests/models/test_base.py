"""The base of all models: token ids, configuration, randomness in training only."""

import inspect
import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from keras_attnvariants.models.base import EncoderDecoder
from keras_attnvariants.models.base import check_length
from keras_attnvariants.models.base import check_token_ids
from keras_attnvariants.models.base import no_alignment
from tests.models import tiny
from tests.models import tiny_lstm

MODELS = {"transformer": tiny.make, "lstm": tiny_lstm.make}
# The arguments that the base class adds to every model.
EVERYWHERE = {"name", "dtype", "quantization"}
EACH_MODEL = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@EACH_MODEL
def test_a_configuration_names_every_argument(make):
    options = {"tie_embeddings": "none"} if make is tiny.make else {}
    model = make(source_vocabulary_size=29, bos_id=5, **options)
    config = json.loads(json.dumps(model.get_config()))
    constructors = (type(model).__init__, EncoderDecoder.__init__)
    arguments = [name for c in constructors for name in inspect.signature(c).parameters]
    named = set(arguments) - {"self", "kwargs"}
    assert set(config) == named | EVERYWHERE
    assert (config["source_vocabulary_size"], config["bos_id"]) == (29, 5)
    again = type(model).from_config(config)
    assert again.get_config() == model.get_config()
    assert again.source_vocabulary_size == 29


@EACH_MODEL
def test_one_vocabulary_is_that_of_the_target(make):
    model = make()
    assert model.source_vocabulary_size == model.vocabulary_size == tiny.VOCABULARY
    assert model.get_config()["source_vocabulary_size"] is None


@EACH_MODEL
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_the_dtype_of_a_configuration_is_the_policy(make, policy):
    model = make(dtype=policy)
    assert model.get_config()["dtype"] == policy
    assert type(model).from_config(model.get_config()).dtype_policy.name == policy


def test_classes_that_are_not_registered_are_given_by_name():
    class Mine(attention.DotProductAttention):
        pass

    model = tiny.make(encoder_attention=Mine(tiny.HEADS), cross_attention=[None] * 2)
    config = json.loads(json.dumps(model.get_config()))
    with pytest.raises(ValueError, match="'Mine' is not known"):
        type(model).from_config(config)
    same = type(model).from_config(config, {"Mine": Mine})
    assert [type(block.self_attention) for block in same.encoder_blocks] == [Mine] * 2


def test_no_alignment_has_the_shape_of_one():
    found = no_alignment(ops.zeros((2, 3), "int32"), ops.ones((2, 5), "bool"))
    assert tuple(found.shape) == (2, 3, 5)
    assert not tiny.to_numpy(found).any()


def dropping(role, name):
    """A model with dropout everywhere, also in its variant if that has any."""
    variant = attention.get(name)
    arguments = dict(variant.examples[variant.fitting(role)[-1]])
    if "dropout" in variant.cls(**arguments).get_config():
        arguments["dropout"] = 0.5
    places = {**tiny.places(), f"{role}_attention": variant.cls(**arguments)}
    return tiny.make(**places, dropout=0.5, feed_forward_dropout=0.5, num_layers=1)


DROPPING = {
    f"{name} as {role}": (role, name)
    for role in attention.registry.ROLES
    for name in attention.variants(role)
}


def random_states(model):
    """The states of all random number generators, whichever layer owns them."""
    return {
        variable.path: tiny.to_numpy(variable.value).tolist()
        for variable in model.variables
        if "seed_generator" in variable.path
    }


def check_randomness(model):
    """Asserts that all generators are used in training, and none in inference."""
    batch = keras.tree.map_structure(ops.convert_to_tensor, tiny.inputs())
    before = random_states(model)
    assert len(before) >= 2
    exact, again = tiny.forward(model), tiny.forward(model)
    np.testing.assert_array_equal(exact, again)
    context = model.encode(batch["source_ids"])
    state = model.initial_state(context, 1, 2)
    position = ops.convert_to_tensor(0, "int32")
    model.step(batch["target_ids"][:, :1], position, state, context)
    assert random_states(model) == before
    dropped = tiny.to_numpy(ops.cast(model(batch, training=True), "float32"))
    assert np.abs(dropped - exact).max() > 1e-3
    after = random_states(model)
    assert [path for path in before if after[path] == before[path]] == []


@pytest.mark.parametrize("case", DROPPING)
def test_every_rate_acts_in_training_and_none_in_inference(case):
    check_randomness(dropping(*DROPPING[case]))


@pytest.mark.parametrize("attends", [False, True])
def test_every_rate_of_an_lstm_acts_in_training_and_none_in_inference(attends):
    check_randomness(tiny_lstm.make(dropout=0.5, attention=attends))


@pytest.mark.slow
@EACH_MODEL
@pytest.mark.filterwarnings("ignore:The `native_ser:DeprecationWarning")  # of JAX
def test_keras_exports_a_model_after_fit(make, tmp_path):
    import tensorflow as tf

    model = make()
    ids = {"source_ids": [[5, 6, 7, 0]], "target_ids": [[2, 8, 9, 0]]}
    inputs = {name: np.array(rows, "int32") for name, rows in ids.items()}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, jit_compile=False)
    model.fit(inputs, inputs["target_ids"], verbose=0)
    signature = None
    if backend.name() == "jax":
        with pytest.raises(ValueError, match="on JAX, which exports fixed lengths"):
            model.export(tmp_path / "refused")
        signature = [{n: keras.InputSpec("int32", (None, 4)) for n in inputs}]
    model.export(tmp_path / "model", verbose=False, input_signature=signature)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    served = loaded.serve({n: tf.constant(rows) for n, rows in inputs.items()})
    expected = tiny.to_numpy(model(inputs))
    np.testing.assert_allclose(served.numpy(), expected, atol=1e-5)


@EACH_MODEL
@pytest.mark.skipif(backend.name() == "jax", reason="Keras converts it, by jax2onnx")
def test_keras_exports_onnx(make, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
    model, path = make(), tmp_path / "model.onnx"
    model.export(path, format="onnx")
    session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_inputs()]
    assert names == ["source_ids", "target_ids"]
    for width in (4, 7):
        rng = np.random.default_rng(width)
        ids = {n: rng.integers(4, 9, (2, width), "int32") for n in names}
        [found] = session.run(["logits"], ids)
        np.testing.assert_allclose(found, tiny.to_numpy(model(ids)), atol=1e-5)


@pytest.mark.parametrize("value", [-1, 9, 100])
def test_ids_outside_the_vocabulary_are_named(value):
    check_token_ids(9, pad_id=0, eos_id=8)
    with pytest.raises(ValueError, match=f"`eos_id`.*9 tokens. Received: {value}"):
        check_token_ids(9, pad_id=0, eos_id=value)


def test_lengths_are_bounded_where_they_are_known():
    check_length("source_ids", 8, 8)
    check_length("source_ids", None, 8)
    check_length("source_ids", ops.convert_to_tensor(9), 8)
    with pytest.raises(ValueError, match="`source_ids`.*at most 8.*Received: 9"):
        check_length("source_ids", 9, 8)
