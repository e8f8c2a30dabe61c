"""Small step models with known probabilities, and their exhaustive search."""

import functools
import itertools

import keras
import numpy as np
from keras import ops

from keras_attnvariants import backend
from keras_attnvariants.decoding import beam_search

PAD, UNK, BOS, EOS = 0, 1, 2, 3

# The values of `xla` that make a difference.
COMPILERS = [False, True] if backend.name() == "tensorflow" else [True]


class TableModel:
    """Looks its logits up by sentence, position and previous token.

    Args:
        tables: float `[C, T, V, V]`; the first source id minus 1 is the sentence.
    """

    pad_id, bos_id, eos_id = PAD, BOS, EOS

    def __init__(self, tables):
        self.tables = np.asarray(tables, "float32")
        _, self.max_length, self.vocabulary_size, _ = self.tables.shape

    def encode(self, source_ids):
        return {"table": ops.take(self.tables, source_ids[:, 0] - 1, axis=0)}

    def initial_state(self, context, beams, max_length):
        return {}

    def step(self, tokens, position, state, context, return_attention_scores=False):
        table = ops.take(context["table"], position, axis=1)  # [B, V, V]
        index = ops.one_hot(tokens, self.vocabulary_size, dtype="float32")
        return ops.einsum("bkv,bvw->bkw", index, table), state


class RecurrentModel:
    """A recurrent network that attends; its state has every kind of leaf.

    `hidden` and `cache` (all earlier hidden vectors) change at each step and depend
    on the tokens; `bias` is passed through unchanged.
    """

    pad_id, bos_id, eos_id = PAD, BOS, EOS

    def __init__(
        self, vocabulary_size=9, dim=8, max_length=64, eos_bias=0.0, seed=0, dtype=None
    ):
        random = np.random.default_rng(seed)
        self.vocabulary_size, self.max_length = vocabulary_size, max_length
        self.dim, self.dtype = dim, dtype or "float32"

        def table(*shape, scale=1.0):
            return random.normal(scale=scale, size=shape).astype("float32")

        self.embeddings = table(vocabulary_size, dim)
        self.positions = table(max_length, dim)
        self.recurrent = table(dim, dim, scale=0.5)
        self.output = table(dim, vocabulary_size, scale=1.2)
        self.output_bias = np.zeros(vocabulary_size, "float32")
        self.output_bias[EOS] = eos_bias

    def encode(self, source_ids):
        mask = ops.cast(ops.not_equal(source_ids, PAD), "float32")
        embedded = ops.take(self.embeddings, source_ids, axis=0)
        positions = ops.cumsum(mask, axis=1)[:, :, None]
        memory = embedded * ops.cos(positions) * mask[:, :, None]
        return {"memory": memory, "mask": mask}

    def initial_state(self, context, beams, max_length):
        batch = ops.shape(context["mask"])[0]
        row = ops.sum(context["memory"], axis=1)[:, None] * 0.3  # [B, 1, dim]
        return {
            "hidden": (ops.zeros((batch, beams, self.dim)),),
            "cache": ops.zeros((batch, beams, max_length, self.dim)),
            "bias": ops.repeat(row, beams, axis=1),
        }

    def step(self, tokens, position, state, context, return_attention_scores=False):
        embedded = ops.take(self.embeddings, tokens, axis=0)
        past = ops.sum(state["cache"], axis=2)
        hidden = embedded + ops.take(self.positions, position, axis=0) + past * 0.3
        hidden += state["hidden"][0] @ self.recurrent + state["bias"]
        hidden = ops.tanh(hidden)
        scores = ops.einsum("bkd,bsd->bks", hidden, context["memory"])
        weights = backend.masked_softmax(scores, context["mask"][:, None] > 0)
        mixed = hidden + ops.einsum("bks,bsd->bkd", weights, context["memory"])
        is_now = ops.equal(ops.arange(ops.shape(state["cache"])[2]), position)
        cache = ops.where(is_now[:, None], hidden[:, :, None], state["cache"])
        new_state = {"hidden": [hidden], "cache": cache, "bias": state["bias"]}
        logits = ops.cast(mixed @ self.output + self.output_bias, self.dtype)
        return (logits, new_state, weights)[: 3 if return_attention_scores else 2]

    def __call__(self, inputs, training=None):
        context = self.encode(inputs["source_ids"])
        steps = inputs["target_ids"].shape[1]
        state, logits = self.initial_state(context, 1, steps), []
        for i in range(steps):
            tokens = inputs["target_ids"][:, i : i + 1]
            output, state = self.step(tokens, i, state, context)
            logits.append(output)
        return ops.concatenate(logits, axis=1)


def table_sources(model):
    """One sentence per table, int32 `[C, 1]`."""
    return np.arange(1, len(model.tables) + 1, dtype="int32")[:, None]


def random_sources(count, width=7, vocabulary_size=9, seed=1):
    """Sentences of 1 to `width` tokens, int32 `[count, width]`."""
    random = np.random.default_rng(seed)
    ids = random.integers(UNK, vocabulary_size, size=(count, width))
    lengths = random.integers(1, width + 1, size=(count, 1))
    return np.where(np.arange(width) < lengths, ids, PAD).astype("int32")


greedy_search = functools.partial(beam_search, beam_size=1)


def search(model, source_ids, function=beam_search, xla=False, **options):
    """Compiles and runs a search; returns `Hypotheses` of NumPy arrays."""
    compiled = backend.jit(functools.partial(function, model, **options), xla=xla)
    return numpy(compiled(ops.convert_to_tensor(source_ids)))


def numpy(hypotheses):
    """`Hypotheses` with NumPy arrays."""
    values = (
        None if value is None else keras.ops.convert_to_numpy(value)
        for value in hypotheses
    )
    return type(hypotheses)(*values)


def brute_force(model, exponent, min_length=0, max_length=None, prefix=None):
    """Scores every possible hypothesis of a `TableModel` in float64.

    Returns:
        ids int `[C, M, T]` and scores `[C, M]`, best first, -inf if forbidden.
    """
    steps = max_length or model.max_length
    tables = model.tables.astype("float64")
    log_probs = tables - np.log(np.exp(tables).sum(-1, keepdims=True))
    tokens = [t for t in range(model.vocabulary_size) if t not in (PAD, BOS, EOS)]
    ids, scores = [], []
    for length in range(steps):
        for body in itertools.product(tokens, repeat=length):
            y = (*body, EOS)
            total = sum(
                log_probs[:, i, before, after]
                for i, (before, after) in enumerate(zip((BOS, *y), y, strict=False))
            )
            score = total * (6 / (5 + len(y))) ** exponent
            padded = np.array((*y, *[PAD] * (steps - len(y))))
            if prefix is not None:
                forced = np.pad(prefix, ((0, 0), (0, steps - prefix.shape[1])))
                matches = ((forced == PAD) | (forced == padded)).all(axis=1)
                score = np.where(matches, score, -np.inf)
            elif length < min_length:
                score = np.full_like(score, -np.inf)
            ids.append(padded)
            scores.append(score)
    scores = np.stack(scores, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.stack(ids)[order], np.take_along_axis(scores, order, axis=1)
