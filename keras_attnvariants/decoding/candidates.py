"""The best next tokens of a large vocabulary."""

import numpy as np
from keras import ops

from keras_attnvariants.backend import as_matrix
from keras_attnvariants.backend import reshape
from keras_attnvariants.backend import sizes
from keras_attnvariants.backend import take
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.utils.typing import Tensor

# Tokens per block of a large vocabulary, see `top_tokens`.
BLOCK = 32


def find_candidates(
    logits: Tensor,
    constraints: Constraints,
    position: Tensor,
    count: int | None,
    ids: Tensor | None = None,
    is_live: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best allowed tokens, with some forbidden ones among them.

    The vocabulary is searched once, and its probabilities are summed once. Tokens that
    are forbidden for all are marked afterwards, among the few tokens found. Words that
    would repeat an n-gram may be many, so the search excludes them.

    Args:
        logits: `[B, K, V]`.
        constraints: which tokens are allowed.
        position: int32 scalar.
        count: number of allowed tokens to find; `None` for all, in the order of ids.
        ids: int32 `[B, K, T]`, the hypotheses. Only constraints on n-grams need it.
        is_live: bool `[B, K]`, which of them exist; by default all.

    Returns:
        Logits, float32 `[B, K, M]`, best first except for forbidden tokens, which have
        `IMPOSSIBLE`; tokens, int32 `[B, K, M]`; and the normalizers, float32
        `[B, K, 1]`: logits minus normalizers are log probabilities. `M` is at least
        `count`, or `V`.
    """
    batch, beams, size = sizes(logits)
    rows = ops.cast(as_matrix(logits), "float32")
    repeats = constraints.repeats(ids, position, size)
    if count is not None:
        count = min(count + constraints.max_forbidden, size)
    values, tokens, normalizer = (
        reshape(found, (batch, beams, found.shape[1]))
        for found in search(rows, repeats, count)
    )
    found = tokens.shape[2]
    forced = constraints.forced_tokens(position)[:, None]  # [B, 1]
    allowed = constraints.are_allowed(tokens, position)
    if repeats is not None:
        is_repeat = gather_beams(repeats, ops.reshape(tokens, (-1, found)))
        allowed &= ~reshape(is_repeat, (batch, beams, found))
        can_go_on = ops.any(allowed, axis=-1)
        if is_live is not None:
            can_go_on &= is_live
        is_stuck = ~ops.any(can_go_on, axis=1, keepdims=True)
        ends = is_stuck & ops.equal(forced, constraints.pad_id)
        forced = ops.where(ends, constraints.eos_id, forced)
    forced_values = take(logits, forced, axis=2, batch_axes=1)  # [B, K, 1]
    forced = forced[:, :, None]
    is_forced = ops.not_equal(forced, constraints.pad_id)
    allowed = ops.where(is_forced, np.arange(found) == 0, allowed)
    tokens = ops.where(is_forced, forced, tokens)
    values = ops.where(is_forced, ops.cast(forced_values, "float32"), values)
    # An allowed token of probability 0 is still better than a forbidden one.
    values = ops.where(allowed, ops.maximum(values, IMPOSSIBLE / 2), IMPOSSIBLE)
    return values, tokens, normalizer


def search(
    rows: Tensor, excluded: Tensor | None, count: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The best tokens of rows, and the normalizers of the rows.

    Args:
        rows: logits, float32 `[N, V]`.
        excluded: bool `[N, V]`, which tokens come last; `None` for none.
        count: number of tokens, or `None` for all in the order of ids.

    Returns:
        Values (float32) and tokens (int32) `[N, count]`, and normalizers, float32
        `[N, 1]`, to which the excluded tokens contribute too.
    """
    if excluded is None and count is not None:
        values, tokens = top_tokens(rows, count)
        # The softmax of the largest logit is `1 / sum(exp(logits - largest))`, and
        # every backend has a fast softmax.
        probabilities = ops.softmax(rows, axis=-1)
        probability = take(probabilities, tokens[:, :1], axis=1, batch_axes=1)
        return values, tokens, values[:, :1] - ops.log(probability)
    normalizer = ops.logsumexp(rows, axis=-1, keepdims=True)
    if excluded is not None:
        rows = ops.where(excluded, -np.inf, rows)
    if count is not None:
        return *top_tokens(rows, count), normalizer
    tokens = ops.broadcast_to(ops.arange(rows.shape[1], dtype="int32"), ops.shape(rows))
    return rows, tokens, normalizer


def top_tokens(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` largest scores of every row, largest first, as `ops.top_k` finds them.

    A large vocabulary is searched in blocks of tokens: the `k` best are in the `k`
    blocks with the largest maxima, and finding a maximum takes a fraction of the time
    of keeping a list. Of tokens with equal scores, those with smaller ids come first.

    Args:
        scores: float32 `[N, V]`.
        k: at most `V`.

    Returns:
        Values (float32) and ids (int32), `[N, k]` each.
    """
    rows, size = sizes(scores)
    if size < 4 * k * BLOCK:
        values, ids = ops.top_k(scores, k)
        return values, ops.cast(ids, "int32")
    count = size // BLOCK
    whole = count * BLOCK
    blocks = scores if whole == size else scores[:, :whole]
    blocks = reshape(blocks, (rows, count, BLOCK))
    _, best = ops.top_k(ops.max(blocks, axis=-1), k)
    # The blocks are sorted: the order of ids decides ties.
    best = -ops.top_k(-ops.cast(best, "int32"), k)[0]
    values = reshape(gather_beams(blocks, best), (rows, k * BLOCK))
    ids = best[:, :, None] * BLOCK + np.arange(BLOCK, dtype="int32")
    ids = reshape(ids, (rows, k * BLOCK))
    if whole < size:
        last = ops.arange(whole, size, dtype="int32")
        last = ops.broadcast_to(last, (ops.shape(scores)[0], size - whole))
        ids = ops.concatenate([ids, last], axis=1)
        values = ops.concatenate([values, scores[:, whole:]], axis=1)
    values, index = ops.top_k(values, k)
    return values, gather_beams(ids, ops.cast(index, "int32"))
