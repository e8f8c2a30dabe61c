"""Decoding a model one position at a time, in tests of several models."""

import keras
import numpy as np
from keras import ops

from keras_attnvariants.decoding.step_model import reorder
from tests.models import tiny

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


def walk(model, tokens, parents, **options):
    """Step by step, reordering on the way: everything that `step` returns but state."""
    context = model.encode(ops.convert_to_tensor(tiny.inputs()["source_ids"]))
    state = model.initial_state(context, BEAMS, tiny.TARGET_LENGTH)
    before, results = state, []
    for position in range(tiny.TARGET_LENGTH):
        if position == REORDER_AT:
            state = reorder(state, before, ops.cast(parents, "int32"))
        before = state
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


def check_stepping(model):
    """Asserts that steps with reordered beams give what `call` gives."""
    tokens, parents = hypotheses()
    (stepped,) = walk(model, tokens, parents)
    late = slice(REORDER_AT, None)
    tiny.near(stepped[:, :, :REORDER_AT], whole(model, tokens)[:, :, :REORDER_AT])
    history = np.take_along_axis(tokens, parents[..., None], axis=1)
    history[:, :, late] = tokens[:, :, late]
    tiny.near(stepped[:, :, late], whole(model, history)[:, :, late])


def check_alignments(model, source, found, read):
    """Asserts that a search's alignments are those of a full pass over what it found.

    Args:
        model: the model.
        source: `[B, S]`.
        found: the `Hypotheses` of the search.
        read: alignments `[B, T, S]` from the model's attention scores.
    """
    found = type(found)(*map(tiny.to_numpy, found))
    for rank in range(found.ids.shape[1]):
        target = np.pad(found.ids[:, rank, :-1], ((0, 0), (1, 0)), constant_values=2)
        batch = {"source_ids": source, "target_ids": target}
        batch = keras.tree.map_structure(ops.convert_to_tensor, batch)
        expected = tiny.to_numpy(read(model.attention_scores(batch)))
        real = np.arange(target.shape[1]) < found.lengths[:, rank, None]
        tiny.near(found.alignments[:, rank][real], expected[real])


def check_one_graph_for_all_shapes(model):
    """Asserts that a graph of unknown sizes decodes what `call` gives."""
    import tensorflow as tf

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
