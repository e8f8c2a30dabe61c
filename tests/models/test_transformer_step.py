"""Decoding one position at a time equals `call`, for every flavour."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.attention.base import SHARED
from tests.models import tiny
from tests.models.stepping import BEAMS
from tests.models.stepping import check_one_graph_for_all_shapes
from tests.models.stepping import check_stepping
from tests.models.stepping import decode
from tests.models.stepping import hypotheses
from tests.models.stepping import reordering
from tests.models.stepping import walk
from tests.selection import mostly_slow

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")


@pytest.mark.parametrize("flavour", mostly_slow(tiny.FLAVOURS, tiny.FAST))
def test_stepping_with_reordered_beams_equals_call(flavour):
    check_stepping(tiny.built(flavour))


STATEFUL = [name for name in tiny.FLAVOURS if name.endswith(("as decoder", "as cross"))]


@pytest.mark.parametrize(
    ("flavour", "dtype"),
    [
        ("another in every layer", "mixed_float16"),
        *mostly_slow(((flavour, "mixed_bfloat16") for flavour in STATEFUL), ()),
    ],
)
def test_a_state_in_half_precision_stays_near_to_the_end(flavour, dtype):
    model, exact = tiny.built(flavour, dtype), tiny.built(flavour)
    check_stepping(model, exact, 0.1)


@pytest.mark.parametrize(
    "flavour",
    ["base, post", "hc-all, output and target tied", "another in every layer"],
)
def test_alignments_are_weights_of_real_tokens_and_change_no_logits(flavour):
    model = tiny.built(flavour)
    tokens = hypotheses()
    parents = reordering(tokens.shape[2], (4,))
    (plain,) = walk(model, tokens, parents)
    logits, alignments = walk(model, tokens, parents, return_attention_scores=True)
    np.testing.assert_array_equal(logits, plain)
    assert alignments.shape == (*tokens.shape, tiny.SOURCE_LENGTH)
    learned = not flavour.startswith("hc-all")
    if learned:  # hard-coded weights are cut off, at borders and by padding
        tiny.near(alignments.sum(-1), np.ones(tokens.shape))
        padding = tiny.inputs()["source_ids"] == 0
        assert not np.moveaxis(alignments, 0, -2)[..., padding].any()


def test_alignments_are_those_of_the_last_cross_attention():
    first, last = tiny.cross(offsets=(0,)), tiny.cross(offsets=(3,))
    model = tiny.make(cross_attention=[first, last])
    tokens = hypotheses()
    parents = reordering(tokens.shape[2], (4,))
    _, alignments = walk(model, tokens, parents, return_attention_scores=True)
    assert alignments[0, 0, 2].argmax() == 5


def test_alignments_without_cross_attention_are_zero():
    model = tiny.built("no cross-attention, no feed-forward")
    tokens = hypotheses()
    parents = reordering(tokens.shape[2], (4,))
    _, alignments = walk(model, tokens, parents, return_attention_scores=True)
    assert alignments.shape == (*tokens.shape, tiny.SOURCE_LENGTH)
    assert not alignments.any()


def test_context_has_a_row_per_sentence_and_state_a_row_per_hypothesis():
    model = tiny.built("another in every layer")
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    state = model.initial_state(context, BEAMS, tiny.TARGET_LENGTH)
    assert {x.shape[0] for x in keras.tree.flatten(context)} == {tiny.BATCH}
    for path, x in keras.tree.flatten_with_path(state):
        rows = (tiny.BATCH,) if SHARED in path else (tiny.BATCH, BEAMS)
        assert tuple(x.shape[: len(rows)]) == rows, path


def test_more_positions_than_the_model_has_are_refused():
    model = tiny.built("base, post")
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    with pytest.raises(ValueError, match="max_length.*72.*Received: 73"):
        model.initial_state(context, BEAMS, tiny.MAX_LENGTH + 1)


def test_steps_compile():
    model, batch = tiny.built("another in every layer"), tiny.inputs()
    compiled = backend.jit(lambda source, tokens: decode(model, source, tokens))
    logits, _ = compiled(*map(ops.convert_to_tensor, batch.values()))
    tiny.near(tiny.to_numpy(logits)[:, 0], tiny.forward(model)[:, -1])


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
@pytest.mark.parametrize(
    "flavour",
    ["positions concatenated, nothing tied or scaled", "another in every layer"],
)
def test_one_graph_serves_all_batch_sizes_and_lengths(flavour):
    check_one_graph_for_all_shapes(tiny.built(flavour))


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
def test_a_graph_refuses_a_source_beyond_max_length_when_it_runs():
    import tensorflow as tf

    model = tiny.built("base, post")
    ids = tf.TensorSpec([None, None], "int32")
    graph = tf.function(model.encode, input_signature=[ids], autograph=False)
    mask = graph(tf.fill([1, tiny.MAX_LENGTH], 5))["mask"]
    assert mask.shape == (1, tiny.MAX_LENGTH)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph(tf.fill([1, tiny.MAX_LENGTH + 1], 5))
