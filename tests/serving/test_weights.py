"""What an export stores: each weight once, in the dtype in which it is read."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.backend import inference_copy
from keras_attnvariants.backend import is_onednn_exact
from keras_attnvariants.backend import jit
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving import export
from keras_attnvariants.serving import operators
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.exported import ExportedModel
from keras_attnvariants.serving.precision import wide_model
from keras_attnvariants.serving.processor import ProcessorError
from keras_attnvariants.serving.weights import StoredWeights
from keras_attnvariants.serving.weights import quantized_matrices
from tests.quantization import quantizing
from tests.serving.tools import LIMITS
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model

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
    assert len(weights.dequantized) == len(quantized_matrices(model)) > 10
    ids = as_batch(ROWS)
    rounded = model({"source_ids": ids, "target_ids": ids})
    copy = inference_copy(model, weights.read)
    exact = copy({"source_ids": ids, "target_ids": ids})
    assert exact.dtype == tf.bfloat16
    both = [np.asarray(logits, "float32").ravel() for logits in (exact, rounded)]
    assert 0.95 < np.corrcoef(*both)[0, 1] < 1
    for matrix, floats in zip(
        quantized_matrices(model), weights.dequantized, strict=True
    ):
        assert floats.values.dtype == tf.bfloat16
        scale = np.asarray(matrix.scale)
        scale = scale[:, None] if matrix.transposed else scale
        expected = np.asarray(matrix.integers) / scale
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
    for matrix in quantized_matrices(model):
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
