"""Training of the recurrent model: gradients, `fit`, low precision."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from tests.models import naive_lstm
from tests.models import tiny
from tests.models.gradients import batch_and_labels
from tests.models.gradients import logits_and_gradients
from tests.models.tiny_lstm import FLAVOURS
from tests.models.tiny_lstm import arrays
from tests.models.tiny_lstm import built
from tests.models.tiny_lstm import make
from tests.quantization import quantizing
from tests.selection import mostly_slow

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

TENSORFLOW = backend.name() == "tensorflow"


COMPILED = [
    ("attention", "graph"),
    ("attention", "xla"),
    ("no attention, one direction", "xla"),
]


@pytest.mark.parametrize(
    ("flavour", "mode"),
    [(flavour, "eager") for flavour in FLAVOURS] + COMPILED * TENSORFLOW,
)
def test_gradients_are_those_of_the_equations(flavour, mode):
    model, (batch, labels) = built(flavour), batch_and_labels()

    def function():
        return logits_and_gradients(model, batch, labels)[1]

    if mode != "eager":
        function = backend.jit(function, xla=mode == "xla")
    found = zip(model.trainable_weights, function(), strict=True)
    gradients = {id(w): tiny.to_numpy(ops.convert_to_tensor(g)) for w, g in found}
    values, config = arrays(model), model.get_config()
    rng, step = np.random.default_rng(0), 1e-5
    for name, variable in naive_lstm.variables(model).items():
        direction = rng.normal(size=variable.shape)
        up, down = (
            naive_lstm.loss(
                {**values, name: values[name] + sign * step * direction},
                config,
                batch,
                labels,
            )
            for sign in (1, -1)
        )
        expected = (up - down) / (2 * step)
        actual = (gradients[id(variable)] * direction).sum()
        assert actual == pytest.approx(expected, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize(
    "jit_compile", mostly_slow([False, True], [False]) if TENSORFLOW else ["auto"]
)
def test_fit_lowers_the_loss_on_one_batch(jit_compile):
    model = make(dropout=0.1)
    model.compile(
        optimizer=keras.optimizers.Adam(3e-2),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    batch, labels = batch_and_labels()
    history = model.fit(batch, labels, epochs=8, batch_size=tiny.BATCH, verbose=0)
    losses = history.history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_near_full_precision_with_finite_gradients(dtype):
    model = built("attention", dtype)
    assert {weight.dtype for weight in model.trainable_weights} == {"float32"}
    policies = {layer.dtype_policy.name for layer in model._flatten_layers()}
    assert policies == {dtype}
    logits, gradients = logits_and_gradients(model, *batch_and_labels())
    assert ops.dtype(logits) == dtype.removeprefix("mixed_")
    logits = tiny.to_numpy(ops.cast(logits, "float32"))
    tiny.near(logits, tiny.forward(built("attention")), 0.1)
    for weight, gradient in zip(model.trainable_weights, gradients, strict=True):
        values = tiny.to_numpy(ops.convert_to_tensor(gradient)).astype("float32")
        assert np.isfinite(values).all(), weight.path
        assert values.any(), weight.path


def test_int8_keeps_logits_near():
    exact, model = built("attention"), make()
    model.set_weights(exact.get_weights())
    with quantizing():
        model.quantize("int8")
    tiny.near(tiny.forward(model), tiny.forward(exact), 0.1)
    assert model.decoder.context_dense.kernel.dtype == "int8"
