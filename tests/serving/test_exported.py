"""Exported models, whose decoding steps have constants as weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.backend import ReversibleEmbedding
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import is_onednn_exact
from keras_attnvariants.backend import jit
from keras_attnvariants.backend.onednn import OPERATOR
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving import export
from keras_attnvariants.serving import exported as exported_module
from keras_attnvariants.serving import operators
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.exported import StoredWeights
from keras_attnvariants.serving.graphs import read_saved_model
from keras_attnvariants.serving.precision import wide_model
from keras_attnvariants.serving.verification import ProcessorError
from tests.quantization import quantizing
from tests.serving.tools import LIMITS
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model

# Operators that pass on a matrix in another form.
PASSING = ("Bitcast", "Cast", "Identity", "Transpose")


def second_inputs(nodes, product="MatMul") -> list[tuple[str, str, bool]]:
    """Name, source of the second input, and use of a bias, for every product."""
    names = {node.name: node for node in nodes}

    def source(name: str):
        node = names.get(name.removeprefix("^").split(":")[0])
        passes = node is not None and node.op in PASSING
        return source(node.input[0]) if passes else node

    biased = {n.input[0].split(":")[0] for n in nodes if n.op == "BiasAdd"}
    return [
        (node.name, getattr(source(node.input[1]), "op", None), node.name in biased)
        for node in nodes
        if node.op == product
    ]


def products_in_loops(path, product="MatMul") -> list[tuple[str, str, bool]]:
    """The `second_inputs` of decoding steps."""
    functions = read_saved_model(path).meta_graphs[0].graph_def.library.function
    bodies = [f.node_def for f in functions if "while_body" in f.signature.name]
    return [found for nodes in bodies for found in second_inputs(nodes, product)]


@pytest.mark.parametrize(
    "precision",
    [
        "float32",
        pytest.param("bfloat16", marks=pytest.mark.slow),
    ],
)
def test_an_export_multiplies_with_constants_and_translates_as_here(
    precision, tmp_path
):
    model = model_in(precision)
    path = export(model, None, tmp_path, **LIMITS)
    verify(path)
    products = products_in_loops(path)
    # Self-attention: in and out; attention to the source: in and out; feed-forward: 2;
    # the vocabulary.
    assert len(products) == 7
    assert {(operator, biased) for _, operator, biased in products} == {("Const", True)}
    expected = jit(lambda ids: beam_search(model, ids), xla=False)(as_batch(ROWS))
    found, _ = served(path)
    ids = np.asarray(found["ids"])
    np.testing.assert_array_equal(ids, expected.ids[:, 0, : ids.shape[1]])
    np.testing.assert_allclose(found["scores"], expected.scores[:, 0], rtol=0.02)


@pytest.mark.slow
@pytest.mark.skipif(not is_onednn_exact(), reason="not on this processor")
def test_products_of_integers_have_constants(tmp_path):
    path = export(model_in("int8"), None, tmp_path, precision="int8", **LIMITS)
    products = products_in_loops(path, OPERATOR)
    assert len(products) == 7
    assert {operator for _, operator, _ in products} == {"Const"}


def exported(model, constant=True) -> ExportedModel:
    return ExportedModel(model, StoredWeights(model), constant)


def test_weights_too_large_for_a_graph_are_not_constants(monkeypatch):
    model = model_in("float32")
    assert exported(model).steps is not None
    monkeypatch.setattr(exported_module, "MAX_CONSTANT_BYTES", 1_000)
    assert exported(model).steps is None


def test_tokens_and_settings_are_those_of_the_model():
    model = model_in("float32")
    for steps in (exported(model), exported(model).inference_copy()):
        assert (steps.eos_id, steps.max_length) == (model.eos_id, model.max_length)
        assert steps.search_settings == model.search_settings


def test_projections_of_the_same_inputs_are_one_constant():
    steps = exported(model_in("float32")).steps
    query = steps.decoder_blocks[0].self_attention.query_dense
    [joint] = query.joint.values()
    assert isinstance(joint.kernel, np.ndarray) and joint.kernel.shape == (16, 48)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_tokens_are_looked_up_where_weights_are_stored(precision):
    model = exported(model_in(precision))
    table = model.steps.embeddings.target
    assert isinstance(table.product.kernel, np.ndarray)
    np.testing.assert_array_equal(table.rows.numpy().T, table.product.kernel)
    assert table.rows.dtype == table.product.dtype
    # TensorFlow would copy the whole matrix for each other read.
    embeddings = model.inference_copy().embeddings
    for each in (table, embeddings.source, embeddings.target):
        assert isinstance(each.rows, tf.Variable)


def test_large_matrices_of_float32_are_stored_transposed(monkeypatch, tmp_path):
    monkeypatch.setattr(exported_module, "MAX_ARRANGED", 64)
    model = model_in("float32")
    table = exported(model).steps.embeddings.target
    assert isinstance(table.product.kernel, tf.Variable)
    rows = model.embeddings.target.embeddings.numpy()
    np.testing.assert_array_equal(table.product.kernel.numpy(), rows.T)
    path = export(model, None, tmp_path, **LIMITS)
    products = products_in_loops(path)
    assert [operator for _, operator, _ in products].count("Const") == 6
    found, _ = served(path)
    expected = jit(lambda ids: beam_search(model, ids), xla=False)(as_batch(ROWS))
    ids = np.asarray(found["ids"])
    np.testing.assert_array_equal(ids, expected.ids[:, 0, : ids.shape[1]])


@pytest.mark.parametrize("size", [40, 512])
def test_the_stored_transpose_is_padded_where_that_is_faster(size, monkeypatch):
    monkeypatch.setattr(exported_module, "MAX_ARRANGED", 64)
    embedding = ReversibleEmbedding(size, 8)
    embedding.build((None,))
    model = keras.Sequential([embedding])
    stored = StoredWeights(model).transposed(embedding.embeddings)
    assert stored.shape == (8, 528 if size == 512 else 40)
    table = inference_copy(embedding, columns=lambda _: stored)
    x = tf.random.normal((3, 8))
    expected = embedding(x, reverse=True)
    found = jit(lambda x: table(x, reverse=True), xla=False)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_other_matrices_are_not_stored_twice(precision, monkeypatch):
    monkeypatch.setattr(exported_module, "MAX_ARRANGED", 64)
    assert not StoredWeights(model_in(precision)).columns


ROWS = [[5, 6, 7], [8], [9, 10, 11, 12], []]


def model_in(precision: str) -> keras.Model:
    """A model in a precision, with weights of its own."""
    policy = "float32" if precision == "float32" else "mixed_bfloat16"
    model = sharp_model("base", dtype=policy)
    if precision == "int8":
        with quantizing():
            model.quantize("int8")
    return model


def served(path):
    """The translations of `ROWS` by an export, and the export itself."""
    loaded = tf.saved_model.load(str(path))
    lengths = [len(row) for row in ROWS]
    translate = loaded.signatures["translate_ids"]
    return translate(source_ids=as_batch(ROWS), lengths=lengths), loaded


def size_of_variables(path) -> int:
    """Bytes of the stored weights."""
    stored = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    dtypes = stored.get_variable_to_dtype_map()
    return sum(
        dtypes[name].size * int(np.prod(shape))
        for name, shape in stored.get_variable_to_shape_map().items()
        if dtypes[name] != tf.string
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "at_most"), [("float32", 4), ("bfloat16", 2.3), ("int8", 1.9)]
)
def test_an_export_is_as_large_as_its_precision_and_translates_as_here(
    precision, at_most, tmp_path
):
    model = model_in(precision)
    path = export(model, None, tmp_path, **LIMITS)
    count = sum(int(np.prod(weight.shape)) for weight in model.weights)
    assert size_of_variables(path) <= at_most * count
    steps = ExportedModel(model, StoredWeights(model), constant=False)
    expected = jit(lambda ids: beam_search(steps, ids), xla=False)(as_batch(ROWS))
    verify(path)
    found, _ = served(path)
    ids = np.asarray(found["ids"])
    np.testing.assert_array_equal(ids, expected.ids[:, 0, : ids.shape[1]])
    assert len(set(ids[:3].ravel())) > 2
    np.testing.assert_allclose(found["scores"], expected.scores[:, 0], rtol=0.02)


def test_integers_become_floats_where_they_are_stored():
    model = model_in("int8")
    weights = StoredWeights(model)
    assert len(weights.dequantized) > 10
    ids = as_batch(ROWS)
    rounded = model({"source_ids": ids, "target_ids": ids})
    copy = inference_copy(model, weights.read)
    exact = copy({"source_ids": ids, "target_ids": ids})
    assert exact.dtype == tf.bfloat16
    both = [np.asarray(logits, "float32").ravel() for logits in (exact, rounded)]
    assert 0.95 < np.corrcoef(*both)[0, 1] < 1
    for floats in weights.dequantized:
        assert floats.values.dtype == tf.bfloat16
        integers, scale = np.asarray(floats.integers), np.asarray(floats.scale)
        # One scale for each output, or for each token.
        expected = integers / (scale[:, None] if floats.by_row else scale)
        np.testing.assert_allclose(
            tf.cast(floats.values, "float32"), expected, rtol=0.01
        )


@pytest.mark.slow
@pytest.mark.skipif(not is_onednn_exact(), reason="not on this processor")
def test_integers_are_multiplied_on_request(tmp_path):
    model = model_in("int8")
    path = export(model, None, tmp_path, precision="int8", **LIMITS)
    verify(path)
    assert "_QuantizedMatMul" in operators(path)["translate_ids"]
    count = sum(int(np.prod(weight.shape)) for weight in model.weights)
    assert size_of_variables(path) <= 1.9 * count
    wide = wide_model(model)
    expected = jit(lambda ids: beam_search(wide, ids), xla=False)(as_batch(ROWS))
    found, loaded = served(path)
    ids = np.asarray(found["ids"])
    np.testing.assert_array_equal(ids, expected.ids[:, 0, : ids.shape[1]])
    np.testing.assert_allclose(found["scores"], expected.scores[:, 0], rtol=0.02)
    one = loaded.signatures["translate_ids"](
        source_ids=as_batch(ROWS[2:3]), lengths=[len(ROWS[2])]
    )
    np.testing.assert_array_equal(one["ids"][0], ids[2, : one["ids"].shape[1]])


@pytest.mark.parametrize(
    "precision", ["float32", pytest.param("int8", marks=pytest.mark.slow)]
)
def test_integers_that_are_not_exact_are_not_exported(precision, tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: False)
    with pytest.raises(ProcessorError, match="processor with AVX512-VNNI"):
        export(model_in(precision), None, tmp_path, precision="int8", **LIMITS)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_exports_in_one_process_keep_their_weights_apart(tmp_path):
    model = model_in("int8")
    first = export(model, None, tmp_path / "first", **LIMITS)
    for matrix in StoredWeights(model).dequantized:
        matrix.integers.assign(-matrix.integers.value)
    second = export(model, None, tmp_path / "second", **LIMITS)
    expected, loaded = served(first)
    other, _ = served(second)
    again, _ = served(first)
    np.testing.assert_array_equal(again["scores"], expected["scores"])
    assert not np.array_equal(other["scores"], expected["scores"])
    del _
    lengths = [len(row) for row in ROWS]
    translate = loaded.signatures["translate_ids"]
    found = translate(source_ids=as_batch(ROWS), lengths=lengths)
    np.testing.assert_array_equal(found["scores"], expected["scores"])
