"""Decoding one position at a time equals `call`, for every flavour."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attnvariants import backend
from tests.models import tiny

# NumPy 2.4 and TensorFlow 2.21 disagree about a keyword of `__array__`.
pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")

BEAMS = 3
REORDER_AT = 4


def hypotheses(seed: int = 3):
    """Tokens `[B, K, T]` that start with BOS, and the hypothesis each continues."""
    rng = np.random.default_rng(seed)
    shape = (tiny.BATCH, BEAMS, tiny.TARGET_LENGTH)
    tokens = rng.integers(4, tiny.VOCABULARY, shape).astype("int32")
    tokens[:, :, 0] = 2
    parents = np.array([[1, 1, 0], [2, 0, 2], [0, 0, 0]])
    return tokens, parents


def gather(x, parents):
    """Rows `parents` `[B, K]` of the hypotheses of `x` `[B, K, ...]`."""
    index = ops.reshape(parents, (*parents.shape, *[1] * (len(x.shape) - 2)))
    return ops.take_along_axis(x, index, axis=1)


def walk(model, tokens, parents, **options):
    """Step by step, reordering on the way: everything that `step` returns but state."""
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    state = model.initial_state(context, BEAMS, tiny.TARGET_LENGTH)
    results = []
    for position in range(tiny.TARGET_LENGTH):
        if position == REORDER_AT:
            state = keras.tree.map_structure(lambda x: gather(x, parents), state)
        logits, state, *scores = model.step(
            ops.convert_to_tensor(tokens[:, :, position]),
            ops.convert_to_tensor(position, "int32"),
            state,
            context,
            **options,
        )
        results.append([tiny.to_numpy(x) for x in (logits, *scores)])
    return [np.stack(result, axis=2) for result in zip(*results, strict=True)]


def whole(model, tokens):
    """`call` on every hypothesis: `[B, K, T, V]`."""
    flat = tokens.reshape(-1, tiny.TARGET_LENGTH)
    source = np.repeat(tiny.inputs()["source_ids"], BEAMS, axis=0)
    logits = tiny.forward(model, {"source_ids": source, "target_ids": flat})
    return logits.reshape(*tokens.shape, -1)


@pytest.mark.parametrize("flavour", tiny.FLAVOURS)
def test_stepping_with_reordered_beams_equals_call(flavour):
    model = tiny.built(flavour)
    tokens, parents = hypotheses()
    (stepped,) = walk(model, tokens, parents)
    late = slice(REORDER_AT, None)
    tiny.near(stepped[:, :, :REORDER_AT], whole(model, tokens)[:, :, :REORDER_AT])
    history = np.take_along_axis(tokens, parents[..., None], axis=1)
    history[:, :, late] = tokens[:, :, late]
    tiny.near(stepped[:, :, late], whole(model, history)[:, :, late])


@pytest.mark.parametrize(
    "flavour",
    ["base, post", "hc-all, output and target tied", "another in every layer"],
)
def test_alignments_are_weights_of_real_tokens_and_change_no_logits(flavour):
    model = tiny.built(flavour)
    tokens, parents = hypotheses()
    (plain,) = walk(model, tokens, parents)
    logits, alignments = walk(model, tokens, parents, return_attention_scores=True)
    np.testing.assert_array_equal(logits, plain)
    assert alignments.dtype == "float32"
    assert alignments.shape == (*tokens.shape, tiny.SOURCE_LENGTH)
    learned = not flavour.startswith("hc-all")
    if learned:  # hard-coded weights are cut off, at borders and by padding
        tiny.near(alignments.sum(-1), np.ones(tokens.shape))
        padding = tiny.inputs()["source_ids"] == 0
        assert not np.moveaxis(alignments, 0, -2)[..., padding].any()


def test_alignments_are_those_of_the_last_cross_attention():
    first, last = tiny.cross(offsets=(0,)), tiny.cross(offsets=(3,))
    model = tiny.make(cross_attention=[first, last])
    tokens, parents = hypotheses()
    _, alignments = walk(model, tokens, parents, return_attention_scores=True)
    assert alignments[0, 0, 2].argmax() == 5


def test_alignments_without_cross_attention_are_zero():
    model = tiny.built("no cross-attention, no feed-forward")
    tokens, parents = hypotheses()
    _, alignments = walk(model, tokens, parents, return_attention_scores=True)
    assert alignments.shape == (*tokens.shape, tiny.SOURCE_LENGTH)
    assert not alignments.any()


def test_context_has_a_row_per_sentence_and_state_a_row_per_hypothesis():
    model = tiny.built("another in every layer")
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    state = model.initial_state(context, BEAMS, tiny.TARGET_LENGTH)
    assert {x.shape[0] for x in keras.tree.flatten(context)} == {tiny.BATCH}
    shapes = {tuple(x.shape[:2]) for x in keras.tree.flatten(state)}
    assert shapes == {(tiny.BATCH, BEAMS)}


def test_more_positions_than_the_model_has_are_refused():
    model = tiny.built("base, post")
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    with pytest.raises(ValueError, match="max_length.*16.*Received: 17"):
        model.initial_state(context, BEAMS, tiny.MAX_LENGTH + 1)


def decode(model, source, tokens):
    """All steps of one hypothesis per sentence, in a loop: the last step's results."""
    context = model.encode(source)
    state = model.initial_state(context, 1, tiny.TARGET_LENGTH)

    def step(position, state):
        column = ops.take(tokens, position[None], axis=1)
        return model.step(column, position, state, context, True)

    def body(position, state):
        return position + 1, step(position, state)[1]

    last = tiny.TARGET_LENGTH - 1
    position, state = ops.while_loop(
        lambda position, state: position < last,
        body,
        (ops.convert_to_tensor(0, "int32"), state),
        maximum_iterations=last,
    )
    logits, _, alignment = step(position, state)
    return logits, alignment


def test_steps_compile():
    model, batch = tiny.built("another in every layer"), tiny.inputs()
    compiled = backend.jit(lambda source, tokens: decode(model, source, tokens))
    logits, _ = compiled(*map(ops.convert_to_tensor, batch.values()))
    tiny.near(tiny.to_numpy(logits)[:, 0], tiny.forward(model)[:, -1])


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
@pytest.mark.parametrize(
    "flavour",
    [
        "base, post",
        "positions concatenated, nothing tied or scaled",
        "another in every layer",
    ],
)
def test_one_graph_serves_all_batch_sizes_and_lengths(flavour):
    import tensorflow as tf

    model = tiny.built(flavour)
    ids = tf.TensorSpec([None, None], "int32")
    graph = tf.function(
        lambda source, tokens: decode(model, source, tokens),
        input_signature=[ids, ids],
    )
    batch = tiny.inputs()
    for rows, width in [(3, tiny.SOURCE_LENGTH), (1, 4), (2, 2)]:
        source = batch["source_ids"][:rows, :width]
        tokens = batch["target_ids"][:rows]
        logits, alignment = graph(source, tokens)
        expected = tiny.forward(model, {"source_ids": source, "target_ids": tokens})
        tiny.near(tiny.to_numpy(logits)[:, 0], expected[:, -1])
        assert alignment.shape == (rows, 1, width)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only TensorFlow has them")
def test_a_graph_refuses_a_source_beyond_max_length_when_it_runs():
    import tensorflow as tf

    model = tiny.built("base, post")
    ids = tf.TensorSpec([None, None], "int32")
    graph = tf.function(model.encode, input_signature=[ids])
    mask = graph(tf.fill([1, tiny.MAX_LENGTH], 5))["mask"]
    assert mask.shape == (1, tiny.MAX_LENGTH)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph(tf.fill([1, tiny.MAX_LENGTH + 1], 5))
