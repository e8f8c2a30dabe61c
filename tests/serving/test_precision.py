"""What models compute in, and translations that do not depend on the batch."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants.serving import export
from keras_attnvariants.serving.precision import Precision
from keras_attnvariants.serving.precision import exact_model
from keras_attnvariants.serving.precision import wide_model
from keras_attnvariants.serving.versions import INFO
from tests.quantization import quantizing
from tests.serving.tools import VOCABULARY_SIZE
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model

BATCHES = (1, 2, 7, 32, 64)


def in_precision(precision: str, policy: str = "float32") -> keras.Model:
    """A small model that computes in a precision."""
    policy = "mixed_bfloat16" if precision == "bfloat16" else policy
    short = {"extra_length": 4}
    model = sharp_model("hc-sa", hidden_dim=64, dtype=policy, search_settings=short)
    if precision == "int8":
        with quantizing():
            model.quantize("int8")
    return model


def test_float32_alone_is_exact():
    assert Precision.of(in_precision("float32"))[:3] == ("float32", None, True)
    assert Precision.of(in_precision("bfloat16"))[:3] == ("bfloat16", None, False)
    assert Precision.of(in_precision("int8"))[:3] == ("float32", "int8", False)
    assert Precision.of(object()).exact


def test_an_exact_model_has_the_same_weights_in_float32():
    model = in_precision("bfloat16")
    exact = exact_model(model)
    assert Precision.of(exact).exact
    for mine, theirs in zip(model.weights, exact.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert exact_model(exact) is exact


def test_products_of_integers_have_float32_around_them():
    model = in_precision("int8", policy="mixed_bfloat16")
    wide = wide_model(model)
    assert Precision.of(wide)[:2] == ("float32", "int8")
    assert wide_model(wide) is wide
    for mine, theirs in zip(model.weights, wide.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    gaussian, learned = (
        getattr(wide.decoder_blocks[-1], f"{role}_attention")
        for role in ("self", "cross")
    )
    assert gaussian.radius == model.decoder_blocks[-1].self_attention.radius == 4
    assert (learned.cache.dtype, learned.compute_dtype) == ("bfloat16", "float32")
    memory = learned.prepare(np.ones((1, 2, 64), "float32"))
    assert memory["key"].dtype == memory["value"].dtype == "bfloat16"


def test_a_quantized_model_cannot_be_exact(tmp_path):
    with pytest.raises(ValueError, match="`exact` needs .*quantized to int8"):
        export(in_precision("int8"), None, tmp_path, exact=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "exact", "differing"),
    [
        ("float32", False, 0),
        ("bfloat16", True, 0),
        ("bfloat16", False, 0.1),
        ("int8", False, 0.1),
    ],
)
def test_a_translation_depends_on_its_batch_only_where_the_info_says_so(
    precision, exact, differing, tmp_path
):
    model = in_precision(precision)
    path = export(model, None, tmp_path, exact=exact, max_tokens=12, beam_size=4)
    info = json.loads((path / INFO).read_text())["precision"]
    assert info["exact"] == (differing == 0)
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, VOCABULARY_SIZE, rng.integers(1, 13)) for _ in range(1000)]
    translate = tf.saved_model.load(path).signatures["translate_ids"]
    by_batch = {size: translated(translate, rows, size) for size in BATCHES}
    assert len(set(by_batch[1])) > 900  # the model does tell sentences apart
    for size in BATCHES[1:]:
        pairs = zip(by_batch[1], by_batch[size], strict=True)
        different = sum(alone != together for alone, together in pairs)
        assert different <= differing * len(rows), size


def translated(translate, rows, size: int) -> list[tuple[int, ...]]:
    """Translations of rows of ids in batches of one size."""
    found = []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        lengths = tf.constant([len(row) for row in part])
        ids = translate(source_ids=tf.constant(as_batch(part, 12)), lengths=lengths)
        for row, length in zip(ids["ids"].numpy(), ids["lengths"].numpy(), strict=True):
            found.append(tuple(row[:length].tolist()))
    return found
