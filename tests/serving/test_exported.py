"""Exported models, whose decoding steps have constants as weights."""

import json

import numpy as np
import pytest

from keras_attnvariants.backend import is_onednn_exact
from keras_attnvariants.backend import jit
from keras_attnvariants.backend.onednn import OPERATOR
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving import export
from keras_attnvariants.serving import exported as exported_module
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.info import INFO
from keras_attnvariants.serving.operators import read_saved_model
from keras_attnvariants.serving.weights import StoredWeights
from tests.serving.test_weights import ROWS
from tests.serving.test_weights import model_in
from tests.serving.test_weights import served
from tests.serving.tools import LIMITS
from tests.serving.tools import as_batch

# They pass on a matrix in another form.
PASSING = ("Bitcast", "Cast", "Identity", "Transpose")


def second_inputs(nodes, product="MatMul") -> list[tuple[str, str, bool]]:
    """Of every product: its name, what makes its second input, if a bias is added."""
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
    info = json.loads((path / INFO).read_text())
    assert info["operators_per_step"] > 100


@pytest.mark.slow
@pytest.mark.skipif(not is_onednn_exact(), reason="not on this processor")
def test_products_of_integers_have_constants(tmp_path):
    path = export(model_in("int8"), None, tmp_path, precision="int8", **LIMITS)
    products = products_in_loops(path, OPERATOR)
    assert len(products) == 7
    assert {operator for _, operator, _ in products} == {"Const"}


def exported(model, constant=True) -> ExportedModel:
    return ExportedModel(model, StoredWeights(model), constant)


def test_weights_beyond_the_size_of_a_graph_are_no_constants(monkeypatch):
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
