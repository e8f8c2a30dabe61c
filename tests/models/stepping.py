"""Decoding a model one position at a time, in tests of several models."""

import functools

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding.step_model import reorder
from tests.models import tiny

BEAMS = 3

# Past every cache of a power of two positions up to this.
LONG = 64 + 3


def hypotheses(length: int = tiny.TARGET_LENGTH, seed: int = 3):
    """Tokens `[B, K, T]` that start with BOS."""
    rng = np.random.default_rng(seed)
    shape = (tiny.BATCH, BEAMS, length)
    tokens = rng.integers(4, tiny.VOCABULARY, shape).astype("int32")
    tokens[:, :, 0] = 2
    return tokens


def reordering(length: int, positions: tuple[int, ...]):
    """The hypothesis that each continues, `[T, B, K]`: a new one at some positions."""
    parents = np.broadcast_to(np.arange(BEAMS), (length, tiny.BATCH, BEAMS))
    parents = parents.astype("int32")
    for number, position in enumerate(positions):
        orders = np.array([[1, 1, 0], [2, 0, 2], [0, 0, 0], [2, 1, 0]], "int32")
        parents[position] = np.roll(orders, number, axis=0)[: tiny.BATCH]
    return parents


def histories(tokens, parents, position: int):
    """The tokens that each hypothesis has seen up to a position, `[B, K, T]`."""
    seen = tokens[:, :, :1]
    for now in range(1, position + 1):
        seen = np.take_along_axis(seen, parents[now][:, :, None], axis=1)
        seen = np.concatenate([seen, tokens[:, :, now : now + 1]], axis=2)
    return seen


def walk(model, tokens, parents, **options):
    """All positions in one compiled loop: the results of `step` except the state.

    Returns:
        Logits `[B, K, T, V]` and, if requested, alignments `[B, K, T, S]`.
    """
    source = tiny.inputs()["source_ids"]
    compiled = backend.jit(functools.partial(loop, model, **options), xla=False)
    results = compiled(*map(ops.convert_to_tensor, (source, tokens, parents)))
    return [tiny.to_numpy(ops.cast(x, "float32")) for x in results]


def loop(model, source, tokens, parents, **options):
    """`walk` on tensors."""
    length = tokens.shape[2]
    context = model.encode(source)

    def advance(position, state):
        column = ops.take(tokens, position, axis=2)
        logits, new, *scores = model.step(column, position, state, context, **options)
        following = ops.minimum(position + 1, length - 1)
        new = reorder(new, state, ops.take(parents, following, axis=0))
        return new, [logits, *scores]

    shape = tokens.shape[:2]
    dtype = model.compute_dtype
    outputs = [ops.zeros((length, *shape, model.vocabulary_size), dtype)]
    if options:
        outputs.append(ops.zeros((length, *shape, source.shape[1]), "float32"))

    def body(position, state, outputs):
        state, results = advance(position, state)
        pairs = zip(outputs, results, strict=True)
        return position + 1, state, [write(*pair, position) for pair in pairs]

    *_, outputs = ops.while_loop(
        lambda position, *others: position < length,
        body,
        (
            ops.convert_to_tensor(0, "int32"),
            model.initial_state(context, BEAMS, length),
            outputs,
        ),
        maximum_iterations=length,
    )
    return [ops.moveaxis(output, 0, 2) for output in outputs]


def write(output, x, position):
    """`output` `[T, ...]` with `x` at a position."""
    is_now = ops.equal(ops.arange(output.shape[0]), position)
    is_now = ops.reshape(is_now, (-1, *[1] * len(x.shape)))
    return ops.where(is_now, x[None], output)


def whole(model, tokens):
    """`call` on every hypothesis: `[B, K, T, V]`."""
    flat = tokens.reshape(-1, tokens.shape[2])
    source = np.repeat(tiny.inputs()["source_ids"], BEAMS, axis=0)
    logits = tiny.forward(model, {"source_ids": source, "target_ids": flat})
    return logits.reshape(*tokens.shape, -1)


def check_stepping(model, exact=None, tolerance: float = 2e-5):
    """Asserts that steps with reordered beams give what `call` gives, to the end.

    Args:
        model: the model whose steps are taken.
        exact: the model whose `call` is the truth; `None` for the same.
        tolerance: see `tiny.near`.
    """
    exact = model if exact is None else exact
    turns = (4, 40, 65)
    tokens, parents = hypotheses(LONG), reordering(LONG, turns)
    (stepped,) = walk(model, tokens, parents)
    for start, end in zip((0, *turns), (*turns, LONG), strict=True):
        expected = whole(exact, padded(histories(tokens, parents, end - 1)))
        now = slice(start, end)
        tiny.near(stepped[:, :, now], expected[:, :, now], tolerance)


def padded(tokens):
    """The tokens with any others up to `LONG` positions: one shape for all calls."""
    missing = LONG - tokens.shape[2]
    return np.pad(tokens, ((0, 0), (0, 0), (0, missing)), constant_values=4)


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


def check_alignments(model, source, found, read):
    """Asserts that a search's alignments are those of a full pass over its results.

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
    """Asserts that a graph of unknown sizes decodes as `call` computes."""
    import tensorflow as tf

    ids = tf.TensorSpec([None, None], "int32")
    graph = tf.function(
        lambda source, tokens: decode(model, source, tokens),
        input_signature=[ids, ids],
        autograph=False,
    )
    batch = tiny.inputs()
    for rows, width in [(3, tiny.SOURCE_LENGTH), (1, 4), (2, 2)]:
        source = batch["source_ids"][:rows, :width]
        tokens = batch["target_ids"][:rows]
        logits, alignment = graph(source, tokens)
        expected = tiny.forward(model, {"source_ids": source, "target_ids": tokens})
        tiny.near(tiny.to_numpy(logits)[:, 0], expected[:, -1])
        assert alignment.shape == (rows, 1, width)
