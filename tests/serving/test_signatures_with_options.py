"""Options of each sentence, exported: searches find the same as in Python."""

import json

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search
from keras_attnvariants.decoding import sample
from keras_attnvariants.serving import Status
from keras_attnvariants.serving import export
from keras_attnvariants.serving.folders import INFO
from keras_attnvariants.serving.saved import SavedTranslator
from keras_attnvariants.serving.version_files import WARM_UP
from tests.decoding.toys import greedy_search
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model
from tests.serving.tools import translate_here

COUNT = 24
NAN = float("nan")


@pytest.fixture(scope="module")
def path(exported_with_options):
    return exported_with_options


@pytest.fixture(scope="module")
def translate_with(path, server):
    """Calls the signature with given options, and leaves the others to the export."""

    def call(texts, **given):
        inputs = {
            "prefix": [""] * len(texts),
            "block_unknown": np.zeros(len(texts), bool),
            "min_length": np.full(len(texts), -1, "int32"),
            "max_length": np.full(len(texts), -1, "int32"),
            "length_penalty": np.full(len(texts), NAN, "float32"),
            "no_repeat_ngram": np.full(len(texts), -1, "int32"),
        }
        return server.call(path, "translate_with", text=texts, **{**inputs, **given})

    return call


@pytest.fixture(scope="module")
def draw(path, server):
    def call(texts, **given):
        inputs = {
            "temperature": np.full(len(texts), NAN, "float32"),
            "top_k": np.full(len(texts), -1, "int32"),
            "top_p": np.full(len(texts), NAN, "float32"),
            "seed": np.full(len(texts), -1, "int32"),
        }
        return server.call(path, "sample", text=texts, **{**inputs, **given})

    return call


def here(function, model, tokenizer, texts, **options):
    """Results of a search in Python, as arrays, and their texts."""
    ids = as_batch(tokenizer.encode(texts))
    run = backend.jit(lambda ids: function(model, ids, **options), xla=False)
    found = run(ids)
    arrays = {
        name: ops.convert_to_numpy(value)[:, 0]
        for name, value in found._asdict().items()
        if value is not None
    }
    return arrays, tokenizer.decode(arrays["ids"])


def test_defaults_are_those_of_the_export(translate_with, path, server, texts):
    served = translate_with(texts[:COUNT])
    expected = server.call(path, "serving_default", text=texts[:COUNT])
    for name in ("translations", "truncated", "status"):
        assert served[name].tolist() == expected[name].tolist()
    np.testing.assert_allclose(served["scores"], expected["scores"], rtol=1e-4)
    assert not served["status"].any()


def test_constraints_of_each_sentence(translate_with, models, tokenizer, texts):
    random = np.random.default_rng(2)
    texts = texts[:COUNT]
    # A prefix for every other sentence.
    prefix = [text.split()[0] if i % 2 else "" for i, text in enumerate(texts)]
    min_length = random.integers(0, 6, COUNT).astype("int32")
    given = {
        "min_length": min_length,
        "max_length": (min_length + random.integers(1, 25, COUNT)).astype("int32"),
        "length_penalty": random.uniform(-0.5, 1.5, COUNT).astype("float32"),
        "block_unknown": random.random(COUNT) < 0.5,
        "no_repeat_ngram": random.integers(0, 4, COUNT).astype("int32"),
    }
    served = translate_with(texts, prefix=prefix, **given)
    forced = as_batch(tokenizer.encode(prefix))
    arrays, expected = here(
        beam_search, models["hc-sa"], tokenizer, texts, beam_size=3, prefix=forced,
        **given,
    )  # fmt: skip
    assert served["translations"].tolist() == expected
    np.testing.assert_array_equal(served["lengths"], arrays["lengths"])
    for name in ("scores", "log_probs"):
        np.testing.assert_allclose(served[name], arrays[name], atol=1e-3, rtol=1e-3)
    assert not served["status"].any()
    assert (served["translations"] != translate_with(texts)["translations"]).any()
    alone = translate_with(
        texts[3:4], prefix=prefix[3:4], **{n: v[3:4] for n, v in given.items()}
    )
    assert alone["translations"].tolist() == served["translations"][3:4].tolist()


def test_samples_are_those_of_python(draw, models, tokenizer, texts):
    random = np.random.default_rng(3)
    texts = texts[:COUNT]
    given = {
        "temperature": random.uniform(0.2, 1.2, COUNT).astype("float32"),
        "top_k": random.integers(0, 5, COUNT).astype("int32"),
        "top_p": random.uniform(0.5, 1.0, COUNT).astype("float32"),
        "seed": random.integers(0, 2**31, COUNT).astype("int32"),
    }
    served = draw(texts, **given)
    arrays, expected = here(sample, models["hc-sa"], tokenizer, texts, **given)
    assert served["translations"].tolist() == expected
    np.testing.assert_allclose(served["log_probs"], arrays["log_probs"], atol=1e-3)
    np.testing.assert_allclose(
        served["token_log_probs"].sum(axis=1), served["log_probs"], atol=1e-3
    )
    is_token = served["pieces"] != ""
    np.testing.assert_array_equal(is_token.sum(axis=1), served["lengths"])
    again = draw(texts[5:6], **{name: values[5:6] for name, values in given.items()})
    assert again["translations"].tolist() == served["translations"][5:6].tolist()
    others = draw(texts, **{**given, "seed": given["seed"] // 2})
    assert (others["translations"] != served["translations"]).any()


def test_a_cold_sample_is_greedy(draw, models, tokenizer, texts):
    served = draw(texts[:COUNT], temperature=np.zeros(COUNT, "float32"))
    _, expected = here(greedy_search, models["hc-sa"], tokenizer, texts[:COUNT])
    assert served["translations"].tolist() == expected


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("min_length", -2),
        ("min_length", 90),
        ("max_length", 91),
        ("no_repeat_ngram", 9),
        ("length_penalty", float("inf")),
        ("temperature", -1.0),
        ("top_k", -3),
        ("top_p", 0.0),
        ("seed", -7),
    ],
)
def test_an_option_out_of_range_fails_its_sentence_alone(
    name, wrong, translate_with, draw, texts
):
    call = draw if name in ("temperature", "top_k", "top_p", "seed") else translate_with
    dtype = "float32" if isinstance(wrong, float) else "int32"
    omitted = NAN if isinstance(wrong, float) else -1
    values = np.array([omitted, wrong, omitted], dtype)
    served = call(texts[:3], **{name: values})
    assert served["status"].tolist() == [0, Status.WRONG_OPTION, 0]
    assert served["translations"][1] == ""
    others = call(texts[:3])["translations"]
    assert served["translations"][[0, 2]].tolist() == others[[0, 2]].tolist()


def test_lengths_that_exclude_each_other(translate_with, texts):
    served = translate_with(
        texts[:2],
        min_length=np.array([5, 4], "int32"),
        max_length=np.array([5, 5], "int32"),
    )
    assert served["status"].tolist() == [Status.WRONG_OPTION, 0]


def test_a_prefix_that_does_not_fit(translate_with, tokenizer, texts):
    prefix = texts[1]
    [ids] = tokenizer.encode([prefix])
    served = translate_with(
        [texts[0]] * 3,
        prefix=[prefix] * 3,
        max_length=np.array([len(ids), len(ids) + 1, 0], "int32"),
    )
    assert served["status"].tolist() == [Status.WRONG_OPTION, 0, 0]
    assert served["translations"][0] == ""
    assert all(text.startswith(prefix) for text in served["translations"][1:])


def test_clients_read_how_to_leave_options_out(path, models):
    info = json.loads((path / INFO).read_text())
    assert set(info["signatures"]) == {"serving_default", "translate_with", "sample"}
    inputs = info["signatures"]["translate_with"]["inputs"]
    penalty = models["hc-sa"].search_settings.length_penalty
    assert inputs["length_penalty"]["doc"].endswith(f"NaN for the default, {penalty}")
    assert inputs["min_length"]["doc"].endswith("-1 for the default, 0")
    assert str(int(Status.WRONG_OPTION)) in info["status"]


def test_limits_of_a_model_are_those_of_its_export(tokenizer, texts, tmp_path):
    limits = {"min_length": 7, "no_repeat_ngram": 2, "extra_length": 20}
    model = sharp_model("hc-sa", search_settings=limits)
    path = tmp_path / "model"
    export(model, tokenizer, path, signatures=["translate_with"])
    exported = SavedTranslator(path)
    found, expected = translate_here(model, tokenizer, texts[:4])
    assert exported.translate(texts[:4]) == expected
    constrained = exported.translate_with(texts[:4])
    assert [translation.text for translation in constrained] == expected
    assert np.min(found.lengths) > 7
    _, free = here(
        beam_search, model, tokenizer, texts[:4], min_length=0, no_repeat_ngram=0
    )
    assert free != expected
    # The minimum of the model yields to a maximum, and one that is given does not.
    lengths = [4, None, 8, 1]
    short = exported.translate_with(texts[:4], max_length=lengths)
    _, wanted = here(
        beam_search, model, tokenizer, texts[:4], max_length=[n or 0 for n in lengths]
    )
    assert [translation.text for translation in short] == wanted
    assert wanted[1] == expected[1] and wanted[3] == ""
    with pytest.raises(ValueError, match="excludes|out of range|'min_length': 4"):
        exported.translate_with(texts[:1], min_length=4, max_length=4)
    off = exported.translate_with(texts[:4], min_length=0, no_repeat_ngram=0)
    assert [translation.text for translation in off] == free


def test_servers_warm_up_without_wrong_options(path, server):
    records = tf.data.TFRecordDataset(str(path / WARM_UP)).as_numpy_iterator()
    requests = [PredictionLog.FromString(r).predict_log.request for r in records]
    names = {request.model_spec.signature_name for request in requests}
    assert names == {"serving_default", "translate_with", "sample"}
    for request in requests:
        arrays = {n: tf.make_ndarray(proto) for n, proto in request.inputs.items()}
        inputs = {n: list(x) if x.dtype == object else x for n, x in arrays.items()}
        served = server.call(path, request.model_spec.signature_name, **inputs)
        assert served["status"].tolist() == [0]


def test_signatures_that_do_not_exist(models, tokenizer, tmp_path):
    with pytest.raises(ValueError, match="`signatures` .* 'sample'.* Received: 'sing'"):
        export(models["hc-sa"], tokenizer, tmp_path, signatures=["sing"])
    with pytest.raises(ValueError, match="`signatures` .* Received: 'sample'"):
        export(models["hc-sa"], None, tmp_path, signatures=["sample"])
    assert not list(tmp_path.iterdir())
