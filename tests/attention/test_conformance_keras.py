"""Every variant as a Keras layer: masks, saving, shapes, dtypes, quantisation."""

import inspect
import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants import backend
from tests.attention.conformance import BATCH
from tests.attention.conformance import HEADS
from tests.attention.conformance import LENGTH
from tests.attention.conformance import WIDTH
from tests.attention.conformance import Case
from tests.attention.conformance import built
from tests.attention.conformance import cases
from tests.attention.conformance import forward
from tests.attention.conformance import inputs
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import near
from tests.attention.conformance import randomize
from tests.attention.conformance import to_numpy
from tests.quantization import quantizing

VOCABULARY = 11


def token_ids(length, lengths):
    """Random ids, padded with 0 on the right."""
    rng = np.random.default_rng(4)
    ids = rng.integers(1, VOCABULARY, size=(BATCH, length))
    return np.where(lengths_mask(lengths, length), ids, 0)


def case_ids(case):
    """Query ids and value ids of a case, with padding in both."""
    source = token_ids(case.source_length, [case.source_length, 3, 1])
    return token_ids(LENGTH, [LENGTH, 3, 1]), source


def embedding():
    layer = keras.layers.Embedding(VOCABULARY, WIDTH, mask_zero=True)
    layer.build((None, None))
    randomize(layer, seed=8)
    return layer


def sides(case):
    """Inputs of a layer in a role: Keras 3.12 refuses models with unused ones."""
    return ("query", "value") if case.role == "cross" else ("query",)


def functional_model(case):
    """Ids to attention outputs, with nothing but Keras' implicit masks."""
    embed, layer = embedding(), case.layer()
    sources = [keras.Input((None,), dtype="int32") for _ in sides(case)]
    output = case.call(layer, embed(sources[0]), embed(sources[-1]))
    model = keras.Model(sources, output)
    randomize(layer)
    return model, layer


@cases("float32", one_on_jax=True)
def test_implicit_masks_equal_explicit_masks(case):
    layer, embed = built(case), embedding()
    query_ids, value_ids = case_ids(case)
    query, value = embed(query_ids), embed(value_ids)
    implicit = case.call(layer, query, value)
    explicit = case.call(
        layer,
        to_numpy(query),
        to_numpy(value),
        query_mask=query_ids != 0,
        value_mask=(value_ids if case.role == "cross" else query_ids) != 0,
    )
    np.testing.assert_array_equal(to_numpy(implicit), to_numpy(explicit))
    np.testing.assert_array_equal(to_numpy(implicit._keras_mask), query_ids != 0)
    assert layer.supports_masking


@cases(one_in_half=True, one_on_jax=True)
def test_keras_file_round_trip(case, tmp_path):
    model, layer = functional_model(case)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    ids = list(case_ids(case))[: len(sides(case))]
    near(
        to_numpy(ops.cast(loaded(ids), "float32")),
        to_numpy(ops.cast(model(ids), "float32")),
        1e-6,
    )
    twin = loaded.get_layer(layer.name)
    assert type(twin) is type(layer)
    assert twin.get_config() == layer.get_config()


@cases("float32", "mixed_bfloat16", one_in_half=True, one_on_jax=True)
def test_config_survives_json(case):
    layer = case.layer(name="chosen", trainable=False)
    config = json.loads(json.dumps(layer.get_config()))
    twin = type(layer).from_config(config)
    assert json.loads(json.dumps(twin.get_config())) == config
    assert (twin.name, twin.trainable) == ("chosen", False)
    assert twin.dtype_policy.name == case.dtype
    parameters = inspect.signature(type(layer).__init__).parameters
    missing = {
        name
        for name, parameter in parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name != "self"
    } - set(config)
    assert not missing, "constructor arguments that the config forgets"
    whole = keras.layers.deserialize(keras.layers.serialize(layer))
    assert type(whole) is type(layer)


# Values that no example sets, and that are not the defaults.
OTHER_VALUES = {
    "use_bias": True,
    "kernel_initializer": keras.initializers.Constant(3.0),
    "output_initializer": keras.initializers.Constant(4.0),
    "bias_initializer": keras.initializers.Constant(5.0),
    "kernel_regularizer": keras.regularizers.L2(0.01),
    "bias_regularizer": keras.regularizers.L1(0.1),
    "kernel_constraint": keras.constraints.MaxNorm(2.0),
    "bias_constraint": keras.constraints.NonNeg(),
    "key_dim": 3,
    "value_dim": 5,
    "dropout": 0.1,
    "seed": 3,
    "standard_deviation": 0.7,
    "flash_attention": True,
    "threshold": 0.01,
    "window": 5,
}


def defaults(cls):
    """The arguments of the constructors of a layer and its parents, with defaults."""
    found = {}
    for parent in cls.__mro__[: cls.__mro__.index(attention.BaseAttention)]:
        constructor = vars(parent).get("__init__")
        parameters = inspect.signature(constructor).parameters if constructor else {}
        for name, parameter in parameters.items():
            if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
                found.setdefault(name, parameter.default)
    return found


def with_another(case, name, default):
    """Arguments of a layer in which the named one differs from its default."""
    for example in (case.arguments, *attention.get(case.variant).examples):
        if name in example and example[name] != default:
            return dict(example)
    if name == "use_bias":
        return {**case.arguments, name: not default}
    assert name in OTHER_VALUES, f"no example sets `{name}`"
    return {**case.arguments, name: OTHER_VALUES[name]}


@cases("float32", one_on_jax=True)
def test_every_argument_of_every_parent_survives_json(case):
    cls = type(case.layer())
    known = defaults(cls)
    needed = {
        name: case.arguments[name]
        for name, default in known.items()
        if default is inspect.Parameter.empty and name in case.arguments
    }
    plain = cls(**needed).get_config()
    for name, default in known.items():
        try:
            layer = cls(**with_another(case, name, default))
        except ValueError as error:
            check_refusal(error, f"`{name}` must be")
            continue
        config = json.loads(json.dumps(layer.get_config()))
        assert name in config, f"the config forgets `{name}`"
        if default is not inspect.Parameter.empty:
            before = json.loads(json.dumps(plain[name]))
            assert config[name] != before, f"the config has the default of `{name}`"
        twin = json.loads(json.dumps(cls.from_config(config).get_config()))
        assert twin[name] == config[name], f"`{name}` is lost"


@cases("float32", one_on_jax=True)
def test_rebuilding_from_config_gives_the_same_weights(case):
    """Building does not write into the config: a copy is built like the original."""
    before = case.layer(name="one").get_config()
    assert {**built(case).get_config(), "name": "one"} == before


@cases(one_in_half=True, one_on_jax=True)
def test_build_creates_all_state(case):
    layer = case.layer()
    source = (None, None, WIDTH)
    layer.build((None, None, WIDTH), source)
    assert layer.built
    shapes = [tuple(weight.shape) for weight in layer.weights]
    query, value = inputs(case)[:2]
    output = case.call(layer, query, value)
    assert [tuple(weight.shape) for weight in layer.weights] == shapes
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    dtype = keras.backend.standardize_dtype(output.dtype)
    assert dtype == layer.compute_dtype


@cases(one_in_half=True, one_on_jax=True)
def test_symbolic_equals_eager(case):
    query, value = inputs(case)[:2]
    layer = built(case)
    for dynamic in (False, True):
        sizes = [(None, None) if dynamic else x.shape[:2] for x in (query, value)]
        symbols = [keras.KerasTensor((*size, WIDTH)) for size in sizes]
        pairs = [(case.call(layer, *symbols), case.call(layer, query, value))]
        if case.has_scores:
            specs = case.call(layer, *symbols, return_attention_scores=True)
            tensors = case.call(layer, query, value, return_attention_scores=True)
            pairs += zip(specs, tensors, strict=True)
        for symbol, tensor in pairs:
            assert symbol.dtype == keras.backend.standardize_dtype(tensor.dtype)
            assert len(symbol.shape) == len(tensor.shape)
            for known, size in zip(symbol.shape, tensor.shape, strict=True):
                assert known == size or (dynamic and known is None)
    if case.has_scores:
        assert specs[1].shape == (None, HEADS, None, None)


@cases("float32", one_on_jax=True)
def test_int8_quantisation(case):
    if case.role != min(case.layer().roles):
        pytest.skip("projections are the same in every role")
    layer = case.layer()
    symbols = [keras.Input((None, WIDTH)) for _ in sides(case)]
    model = keras.Model(symbols, case.call(layer, symbols[0], symbols[-1]))
    randomize(layer)
    arrays = inputs(case)[: len(symbols)]
    before = to_numpy(forward(model, arrays))
    matrices = sum(weight.name in ("kernel", "embeddings") for weight in layer.weights)
    with quantizing():
        model.quantize("int8")
    after = to_numpy(forward(model, arrays))
    assert sum(weight.dtype == "int8" for weight in layer.weights) == matrices
    near(after, before, 0.05)
    assert np.abs(after - before).max() > 0


@cases("float32", one_on_jax=True)
def test_dynamic_shapes_equal_static_ones(case):
    if backend.name() != "tensorflow":
        pytest.skip("only TensorFlow has dynamic shapes")
    import tensorflow as tf

    layer = built(case)

    def forward(query, value, query_mask, value_mask):
        masks = {"query_mask": query_mask, "value_mask": value_mask}
        return case.call_with_scores(layer, query, value, **masks)

    floats = tf.TensorSpec((None, None, WIDTH), "float32")
    booleans = tf.TensorSpec((None, None), "bool")
    dynamic = tf.function(forward, input_signature=[floats, floats, booleans, booleans])
    for length in (LENGTH, 2 * LENGTH, 1):
        arrays = inputs(case, length=length)
        for found, expected in zip(dynamic(*arrays), forward(*arrays), strict=True):
            near(found, expected, 1e-6)
    assert dynamic.experimental_get_tracing_count() == 1


def check_refusal(error, argument):
    """Asserts that the message is ours; Keras appends the names of all arguments."""
    message = str(error).split("Arguments received by")[0]
    assert argument in message
    assert "Received:" in message


def honoured_or_refused(case, argument, content, **reference_arguments):
    """Asserts that an argument of `call` is honoured as by the reference or refused."""
    query, value = inputs(case)[:2]
    layer = built(case)
    try:
        output = case.call(layer, query, value, **{argument: content})
    except (TypeError, ValueError) as error:
        check_refusal(error, argument)
    else:
        expected, _ = case.expected(layer, query, value, **reference_arguments)
        near(to_numpy(output), expected, case.tolerance)


@cases("float32", one_on_jax=True)
def test_attention_mask_is_honoured_or_refused(case):
    shape = (BATCH, LENGTH, case.source_length)
    mask = np.random.default_rng(6).random(shape) < 0.6
    honoured_or_refused(case, "attention_mask", mask, attention_mask=mask)


@cases("float32", roles=("encoder", "decoder"), one_on_jax=True)
def test_self_attention_refuses_two_lengths(case):
    layer = built(case)
    if "cross" in layer.roles:
        pytest.skip("takes two lengths")
    query, value = inputs(case)[:2]
    symbols = keras.Input((LENGTH, WIDTH)), keras.Input((LENGTH - 1, WIDTH))
    for pair in ((query, value[:, 1:]), symbols):
        with pytest.raises(ValueError) as error:
            layer(*pair)
        check_refusal(error.value, "`query` and `value` must have the same length")


@cases("float32", one_on_jax=True)
def test_key_is_honoured_or_refused(case):
    key = inputs(case, seed=12)[1]
    honoured_or_refused(case, "key", key, key=key)


@cases("float32", roles=("encoder", "cross"), one_on_jax=True)
def test_causal_mask_is_honoured_or_refused(case):
    causal = np.tril(np.ones((LENGTH, case.source_length), bool))
    query, value = inputs(case)[:2]
    value = value if case.role == "cross" else query
    layer = built(case)
    try:
        output = layer(query, value, use_causal_mask=True)
    except (TypeError, ValueError) as error:
        check_refusal(error, "use_causal_mask")
    else:
        expected, _ = case.expected(layer, query, value, attention_mask=causal)
        near(to_numpy(output), expected, case.tolerance)


@cases("float32", one_on_jax=True)
def test_key_mask_is_honoured_or_refused(case):
    mask = inputs(case)[3]
    honoured_or_refused(case, "key_mask", mask, value_mask=mask)


@pytest.mark.parametrize(
    "name", [n for n, v in attention.variants().items() if not v.cls.has_scores]
)
def test_scores_are_refused_where_there_are_none(name):
    case = Case(name, min(attention.variants()[name].roles), 0)
    layer, symbol = built(case), keras.KerasTensor((None, None, WIDTH))
    for query in (inputs(case)[0], symbol):
        with pytest.raises(ValueError) as caught:
            layer(query, query, return_attention_scores=True)
        check_refusal(caught.value, "return_attention_scores")


@pytest.mark.parametrize("name", sorted(attention.variants()))
def test_call_is_a_drop_in_for_keras(name):
    ours = inspect.signature(attention.variants()[name].cls.call).parameters
    theirs = inspect.signature(keras.layers.MultiHeadAttention.call).parameters
    assert [(p.name, p.default) for p in ours.values()] == [
        (p.name, p.default) for p in theirs.values()
    ]
