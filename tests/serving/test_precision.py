"""Precisions of models, and translations that do not depend on the batch."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.serving import export
from keras_attnvariants.serving import precision
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.precision import Precision
from keras_attnvariants.serving.precision import model_in
from keras_attnvariants.serving.precision import wide_model
from keras_attnvariants.serving.precision import with_integers
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
        model.quantize("int8")
    return model


def test_float32_alone_is_exact():
    assert Precision.of(in_precision("float32"))[:3] == ("float32", None, True)
    assert Precision.of(in_precision("bfloat16"))[:3] == ("bfloat16", None, False)
    assert Precision.of(in_precision("int8"))[:3] == ("float32", "int8", False)
    assert Precision.of(object()).exact


@pytest.mark.parametrize(
    ("given", "wanted"), [("bfloat16", "float32"), ("float32", "bfloat16")]
)
def test_a_model_in_other_floats_has_the_same_weights(given, wanted):
    model = in_precision(given)
    other = model_in(model, wanted)
    assert Precision.of(other)[:2] == (wanted, None)
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert model_in(other, wanted) is other and model_in(model, None) is model


@pytest.mark.parametrize("best", ["float32", "bfloat16"])
def test_what_is_fastest_is_taken(monkeypatch, best):
    monkeypatch.setattr(backend, "faster_floats", lambda: best)
    monkeypatch.setattr(precision, "faster_floats", lambda model: (best, 1.0))
    model = in_precision("float32")
    assert Precision.of(model_in(model, "auto"))[:2] == (best, None)
    stored = model_in(model, "int8-weights")
    assert Precision.of(stored)[:2] == (best, "int8")
    assert model_in(stored, "auto") is stored and model.quantization is None


@pytest.mark.parametrize(
    ("costs", "expected"),
    [((0.5, 2.0), "float32"), ((1.0, 0.81), "bfloat16"), ((0.98, 0.96), "float32")],
)
def test_floats_are_compared_by_searches_of_the_model(monkeypatch, costs, expected):
    model, found = in_precision("float32"), []

    def shortest(runs, clock, limit):
        found.append({name: run() for name, run in runs.items()})
        return {"float32": 2.0, "bfloat16": 2.0 * costs[len(found) - 1]}

    monkeypatch.setattr(backend, "sums_bfloat16_in_float32", lambda: True)
    monkeypatch.setattr(precision, "shortest_seconds", shortest)
    best, cost = precision.faster_floats(model)
    assert best == expected and cost == pytest.approx(np.sqrt(np.prod(costs)))
    for scores, count in zip(found, (1, 32), strict=True):
        assert list(scores) == ["float32", "bfloat16"]
        assert scores["float32"].shape == (count, 1)
        # The same search of the same weights, in other floats.
        np.testing.assert_allclose(*scores.values(), rtol=0.05)
        assert (scores["float32"] != scores["bfloat16"]).any()
    assert Precision.of(model)[:2] == ("float32", None)


def test_bfloat16_is_not_timed_where_partial_sums_are_rounded(monkeypatch):
    monkeypatch.setattr(backend, "sums_bfloat16_in_float32", lambda: False)
    monkeypatch.setattr(precision, "shortest_seconds", None)
    assert precision.faster_floats(in_precision("float32")) == ("float32", None)


@pytest.mark.parametrize(("longest", "tokens"), [(90, 8), (5, 5)])
def test_translations_of_timed_searches_have_a_fixed_length(
    monkeypatch, longest, tokens
):
    limits = []

    def search(*given, **options):
        found = beam_search(*given, **options)
        count = tf.ensure_shape(found.lengths, (None, 1))
        checked = tf.debugging.assert_equal(count, tokens)
        limits.append(options)
        with tf.control_dependencies([checked]):
            return found._replace(scores=tf.identity(found.scores))

    monkeypatch.setattr(precision, "beam_search", search)
    run = precision.short_search(sharp_model("base", max_length=longest))
    assert run(2).shape == (2, 1) and run(1).shape == (1, 1)
    # One graph for any number of sentences, whose translations may not end before.
    assert limits == [{"min_length": tokens - 1, "max_length": tokens}]


def test_integers_have_float32_around_them_where_they_are_multiplied(monkeypatch):
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: True)
    model = model_in(in_precision("bfloat16"), "int8")
    assert Precision.of(model)[:2] == ("float32", "int8")


@pytest.mark.filterwarnings("error")  # Keras warns of layers without matrices
def test_a_quantized_model_is_not_quantized_again():
    model = in_precision("int8", policy="mixed_bfloat16")
    found = with_integers(model, "float32")
    assert Precision.of(found)[:2] == ("float32", "int8")
    for mine, theirs in zip(model.weights, found.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_no_other_precisions():
    with pytest.raises(ValueError, match="`precision`.*'int8-weights'.*'int4'"):
        model_in(in_precision("float32"), "int4")


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
    with pytest.raises(ValueError, match="'float32' needs .*quantized to int8"):
        export(in_precision("int8"), None, tmp_path, precision="float32")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "exported", "differing"),
    [
        ("float32", None, 0),
        ("bfloat16", "float32", 0),
        ("bfloat16", None, 0.1),
        ("int8", None, 0.1),
    ],
)
def test_a_translation_depends_on_its_batch_only_where_the_info_says_so(
    given, exported, differing, tmp_path
):
    model = in_precision(given)
    path = export(model, None, tmp_path, precision=exported, max_tokens=12, beam_size=4)
    info = json.loads((path / INFO).read_text())["precision"]
    assert info["exact"] == (differing == 0)
    rng = np.random.default_rng(0)
    rows = [rng.integers(4, VOCABULARY_SIZE, rng.integers(1, 13)) for _ in range(1000)]
    translate = tf.saved_model.load(path).signatures["translate_ids"]
    by_batch = {size: translated(translate, rows, size) for size in BATCHES}
    assert len(set(by_batch[1])) > 900  # the model distinguishes sentences
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
