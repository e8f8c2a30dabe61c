"""Models that multiply integers, on processors that do and do not do so exactly."""

import platform

import numpy as np
import pytest
import tensorflow as tf

from keras_attnvariants import backend
from keras_attnvariants.serving import export
from keras_attnvariants.serving import processor
from keras_attnvariants.serving import verify
from keras_attnvariants.serving.processor import ProcessorError
from tests.quantization import quantizing
from tests.serving.tools import LIMITS
from tests.serving.tools import OtherProcess
from tests.serving.tools import ServingError
from tests.serving.tools import as_batch
from tests.serving.tools import sharp_model

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="only TensorFlow for x86 multiplies integers"
)

# A process multiplies as on a processor without AVX512; TensorFlow would ask oneDNN for
# products of bfloat16, which it then does not have.
WITHOUT_VNNI = {"ONEDNN_MAX_CPU_ISA": "AVX2", "TF_ENABLE_ONEDNN_OPTS": "0"}

ROWS = [[5, 6, 7], [8]]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Exports of one model: with integers to multiply, and without."""
    model = sharp_model("hc-sa", dtype="mixed_bfloat16")
    with quantizing():
        model.quantize("int8")
    folder = tmp_path_factory.mktemp("integers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "is_onednn_exact", lambda: True)
        integers = export(model, None, folder / "integers", precision="int8", **LIMITS)
    return integers, export(model, None, folder / "floats", **LIMITS)


def translate(process, path):
    lengths = np.array([len(row) for row in ROWS], "int32")
    inputs = {"source_ids": np.asarray(as_batch(ROWS)), "lengths": lengths}
    return [
        process.call(path, signature, **inputs)
        for signature in ("serving_default", "translate_ids")
    ]


def test_every_answer_is_an_error_where_it_would_be_wrong(models):
    integers, floats = models
    process = OtherProcess("tensorflow_text", **WITHOUT_VNNI)
    try:
        for _ in range(2):
            with pytest.raises(ServingError, match="does not do exactly.*AVX512-VNNI"):
                translate(process, integers)
        one, other = translate(process, floats)
    finally:
        process.close()
    np.testing.assert_array_equal(one["ids"], other["ids"])
    assert (one["status"] == 0).all()


@pytest.mark.skipif(not backend.is_onednn_exact(), reason="not on this processor")
def test_where_integers_are_exact_there_are_translations(models):
    verify(models[0])
    lengths = [len(row) for row in ROWS]
    served = tf.saved_model.load(str(models[0])).signatures["serving_default"]
    found = served(source_ids=as_batch(ROWS), lengths=lengths)
    assert (found["status"].numpy() == 0).all()


def test_it_is_said_before_a_model_is_loaded(models, monkeypatch):
    integers, floats = models
    monkeypatch.setattr(backend, "is_onednn_exact", lambda: False)
    with pytest.raises(ProcessorError, match=f"AVX512-VNNI.* Received: {integers}"):
        verify(integers)
    verify(floats)
    processor.check_processor(floats)
