"""The contract: the base class checks and completes what a variant returns."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import attention
from keras_attnvariants.attention.base import BaseAttention
from tests.attention.conformance import lengths_mask
from tests.attention.conformance import to_numpy

WIDTH = 18  # not a multiple of the examples' four heads
HAVE_HEADS = sorted(
    name for name, v in attention.variants().items() if "num_heads" in v.examples[0]
)


@pytest.mark.parametrize("name", HAVE_HEADS)
def test_heads_that_do_not_divide_the_width_need_a_width_of_their_own(name):
    variant = attention.get(name)
    options = dict(variant.examples[0])
    if name == "NeuralNgram":  # by slices, no width of a head would do
        options["head_input"] = "full"
    layer = variant.cls(**options)
    argument = "key_dim" if hasattr(layer, "key_dim") else "value_dim"
    message = f"`num_heads` .*`{argument}` .*Received: num_heads=4, width={WIDTH}"
    with pytest.raises(ValueError, match=message):
        layer.build((None, None, WIDTH))
    variant.cls(**options, **{argument: 5}).build((None, None, WIDTH))


class Returning(BaseAttention):
    """Returns what its constructor was given, as a careless variant might."""

    roles = frozenset({"encoder", "decoder", "cross"})

    def __init__(self, found):
        super().__init__()
        self.found = found

    def attend(self, call):
        return self.found(call.query)

    def attend_step(self, step):
        return self.found(step.query)


def weights_with(axes=4):
    """Weights with the right number of axes, or with another."""
    return ops.ones((2, 1, 3, 3)[:axes])


# With a batch of 2 or 3, a tensor would unpack like a pair or a triple.
@pytest.mark.parametrize(
    "found, received",
    [
        (lambda query: query, "Tensor|Array"),
        (lambda query: [query, None], "list"),
        (lambda query: (query,), "tuple"),
        (lambda query: (query, None, None), "tuple"),
        (lambda query: None, "NoneType"),
    ],
)
def test_attend_must_return_a_pair(found, received):
    x = ops.ones((2, 3, 4))
    message = f"`attend` of Returning must .*\\(context, weights\\).*({received})"
    with pytest.raises(TypeError, match=message):
        Returning(found)(x, x)


@pytest.mark.parametrize(
    "found, received",
    [
        (lambda query: query, "Tensor|Array"),
        (lambda query: (query, {}), "tuple"),
        (lambda query: [query, None, {}], "list"),
    ],
)
def test_attend_step_must_return_a_triple(found, received):
    query = ops.ones((3, 2, 4))
    message = f"`attend_step` of Returning must .*weights, state\\).*({received})"
    with pytest.raises(TypeError, match=message):
        Returning(found).step(query, 0, {})


@pytest.mark.parametrize("axes, shape", [(None, "None"), (3, r"\(2, 1, 3\)")])
def test_weights_must_be_there_when_they_are_asked_for(axes, shape):
    def weights():
        return None if axes is None else weights_with(axes)

    x = ops.ones((2, 3, 4))
    layer = Returning(lambda query: (query, weights()))
    layer(x, x)  # nobody asked for them
    with pytest.raises(TypeError, match=f"`attend` .*four axes.*shape {shape}"):
        layer(x, x, return_attention_scores=True)
    layer = Returning(lambda query: (query, weights(), {}))
    layer.step(x, 0, {})
    with pytest.raises(TypeError, match=f"`attend_step` .*four axes.*shape {shape}"):
        layer.step(x, 0, {}, return_attention_scores=True)


def test_a_query_mask_empties_contexts_and_weights():
    layer = Returning(lambda query: (query, weights_with()))
    x, mask = ops.ones((2, 3, 4)), lengths_mask([3, 1], 3)
    output, scores = layer(x, x, query_mask=mask, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(output)[..., 0], mask)
    np.testing.assert_array_equal(to_numpy(scores)[:, 0, :, 0], mask)


def test_one_context_serves_all_beams():
    layer = Returning(lambda query: (query[:, :1], None, {"new": query}))
    output, state = layer.step(ops.ones((2, 5, 4)), 0, {})
    assert tuple(output.shape) == (2, 5, 4)
    assert set(state) == {"new"}


def test_methods_that_a_variant_does_not_define_are_named():
    x, layer = ops.ones((2, 3, 4)), BaseAttention()
    for method, call in (
        ("attend", lambda: layer(x, x)),
        ("attend_step", lambda: layer.step(x, 0, {})),
    ):
        with pytest.raises(NotImplementedError, match=f"does not define `{method}`"):
            call()
    with pytest.raises(NotImplementedError, match="cannot do cross-attention"):
        layer.prepare(x)


def test_scores_are_seen_in_symbolic_calls_wherever_they_are_asked_for():
    layer = Returning(lambda query: (query, weights_with()))
    x = keras.KerasTensor((2, None, 4))
    _, scores = layer.compute_output_spec(x, x, None, None, None, None, None, True)
    assert scores.shape == (2, 1, None, None)
    assert layer.compute_output_spec(x, x).shape == (2, None, 4)
