"""Training: `fit`, gradients in half precision, quantization afterwards."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.data.model_folders import load_model
from keras_attnvariants.data.model_folders import save_model
from keras_attnvariants.training import LabelSmoothedCrossEntropy
from keras_attnvariants.training import Perplexity
from keras_attnvariants.training import TokenCount
from tests.models import tiny
from tests.models.gradients import batch_and_labels
from tests.models.gradients import logits_and_gradients
from tests.quantization import quantizing
from tests.selection import mostly_slow

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

MODES = [False, True] if backend.name() == "tensorflow" else ["auto"]


@pytest.mark.parametrize("jit_compile", mostly_slow(MODES, MODES[:1]))
def test_fit_lowers_the_loss_on_one_batch(jit_compile):
    places = tiny.places(tiny.encoder(), tiny.learned(dropout=0.1), tiny.learned())
    model = tiny.make(**places, num_layers=1, dropout=0.1)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    batch, labels = batch_and_labels()
    history = model.fit(batch, labels, epochs=8, batch_size=tiny.BATCH, verbose=0)
    losses = history.history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]


def train_on_padding(columns):
    """Logs and weights after two updates of plain `fit`, without sample weights."""
    keras.utils.set_random_seed(3)
    places = tiny.places(tiny.learned(), tiny.learned(), tiny.learned())
    model = tiny.make(**places, num_layers=1, dropout=0.0)
    model.compile(
        keras.optimizers.SGD(1.0),
        LabelSmoothedCrossEntropy(0.1),
        metrics=[Perplexity()],
        weighted_metrics=[TokenCount()],
        jit_compile=MODES[0],
    )
    source = np.array([[3, 5, 4, 6], [4, 7, 0, 0]])
    target = np.array([[2, 8, 6, 5, 3], [2, 6, 3, 0, 0]])
    source, target = (np.pad(x, ((0, 0), (0, columns))) for x in (source, target))
    inputs = {"source_ids": source, "target_ids": target[:, :-1]}
    history = model.fit(inputs, target[:, 1:], epochs=2, shuffle=False, verbose=0)
    return history.history, model.get_weights()


def test_plain_fit_does_not_count_padding():
    logs, weights = train_on_padding(0)
    assert logs["tokens"] == [6.0, 6.0]
    for columns in (6, 18):
        others, same = train_on_padding(columns)
        for name, values in logs.items():
            np.testing.assert_allclose(others[name], values, rtol=1e-5)
        for mine, other in zip(weights, same, strict=True):
            np.testing.assert_allclose(other, mine, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_near_full_precision_with_finite_gradients(dtype):
    exact = tiny.built("another in every layer")
    model = tiny.built("another in every layer", dtype)
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}
    logits, gradients = logits_and_gradients(model, *batch_and_labels())
    assert ops.dtype(logits) == dtype.removeprefix("mixed_")
    tiny.near(tiny.to_numpy(ops.cast(logits, "float32")), tiny.forward(exact), 0.1)
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        values = tiny.to_numpy(ops.convert_to_tensor(gradient)).astype("float32")
        assert np.isfinite(values).all(), weight.path
        assert values.any(), weight.path


def test_half_precision_reaches_every_layer():
    model = tiny.built("another in every layer", "mixed_bfloat16")
    policies = {layer.dtype_policy.name for layer in model._flatten_layers()}
    assert policies == {"mixed_bfloat16"}


@pytest.fixture(scope="module")
def quantized():
    """A model quantized to int8, and the float model of the same weights."""
    flavour = {
        **tiny.places(tiny.learned(), tiny.decoder(), tiny.learned()),
        "num_layers": 1,
    }
    exact, model = tiny.make(**flavour), tiny.make(**flavour)
    tiny.randomize(exact)
    tiny.randomize(model)
    with quantizing():
        model.quantize("int8")
    return model, exact


def test_int8_reaches_every_matrix_and_keeps_logits_near(quantized):
    model, exact = quantized
    kernels = [w for w in model.weights if w.path.endswith(("kernel", "embeddings"))]
    assert {weight.dtype for weight in kernels} == {"int8"}
    tiny.near(tiny.forward(model), tiny.forward(exact), 0.05)
    assert np.abs(tiny.forward(model) - tiny.forward(exact)).max() > 0


def test_a_quantized_model_decodes_step_by_step(quantized):
    model, _ = quantized
    batch = tiny.inputs()
    context = model.encode(ops.convert_to_tensor(batch["source_ids"]))
    state = model.initial_state(context, 1, 2)
    logits = []
    for position in range(2):
        tokens = ops.convert_to_tensor(batch["target_ids"][:, position : position + 1])
        index = ops.convert_to_tensor(position, "int32")
        step, state = model.step(tokens, index, state, context)
        logits.append(tiny.to_numpy(step)[:, 0])
    # Activations are quantized by row, and a step sees only its own.
    tiny.near(np.stack(logits, 1), tiny.forward(model)[:, :2], 0.05)


def test_a_quantized_model_is_saved_and_loaded_as_one(quantized, tmp_path):
    model, _ = quantized
    save_model(model, tmp_path / "int8")
    with quantizing():
        loaded = load_model(tmp_path / "int8").model
    tiny.near(tiny.forward(loaded), tiny.forward(model), 1e-6)
