"""The best next tokens, out of a vocabulary that is far larger than their number."""

from keras import ops

from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.step_model import gather_beams

BLOCK = 32


def candidates(logits, constraints, position, count: int):
    """The best tokens that may come next, and some that may not.

    The vocabulary is searched once and its probabilities are added up once. What is
    forbidden is sorted out afterwards, among the few.

    Args:
        logits: `[B, K, V]`.
        constraints: a `Constraints`.
        position: int32 scalar.
        count: number of allowed tokens to find.

    Returns:
        Logits, float32 `[B, K, M]`, best first but for forbidden tokens, which have
        `IMPOSSIBLE`; tokens, int32 `[B, K, M]`; and what to subtract from logits for
        log probabilities, float32 `[B, K, 1]`. `M` is at least `count`, or `V`.
    """
    batch, beams, size = ops.shape(logits)
    logits = ops.cast(logits, "float32")
    count = min(count + constraints.most_blocked, size)
    rows = ops.reshape(logits, (batch * beams, size))
    values, tokens = (
        ops.reshape(found, (batch, beams, count)) for found in top_tokens(rows, count)
    )
    total = log_sum_exp(logits, values[:, :, :1])
    forced = constraints.forced(position)[:, None, None]
    is_forced = ops.not_equal(forced, constraints.pad_id)
    forced_values = ops.take_along_axis(
        logits, ops.broadcast_to(forced, (batch, beams, 1)), axis=2
    )
    allowed = ops.where(
        is_forced,
        ops.equal(ops.arange(count), 0),
        constraints.are_allowed(tokens, position),
    )
    tokens = ops.where(is_forced, forced, tokens)
    values = ops.where(is_forced, forced_values, values)
    # An allowed token without probability is still better than a forbidden one.
    values = ops.where(allowed, ops.maximum(values, IMPOSSIBLE / 2), IMPOSSIBLE)
    return values, tokens, total


def log_sum_exp(logits, largest):
    """`log(sum(exp(logits)))` over the last axis, given its largest entry."""
    largest = ops.maximum(largest, IMPOSSIBLE)
    total = ops.sum(ops.exp(logits - largest), axis=-1, keepdims=True)
    return largest + ops.log(total)


def top_tokens(scores, k: int):
    """The `k` largest of every row, largest first, as `ops.top_k` finds them.

    A large vocabulary is searched in blocks of tokens: the `k` best are in the `k`
    blocks of the largest maxima, and finding a maximum takes a fraction of the time of
    keeping a list. Of equal tokens those with smaller ids come first.

    Args:
        scores: `[N, V]`.
        k: at most `V`.

    Returns:
        Values, and ids (int32), `[N, k]` each.
    """
    rows, size = ops.shape(scores)[0], scores.shape[1]
    if size < 4 * k * BLOCK:
        values, ids = ops.top_k(scores, k)
        return values, ops.cast(ids, "int32")
    count = size // BLOCK
    blocks = ops.reshape(scores[:, : count * BLOCK], (rows, count, BLOCK))
    _, best = ops.top_k(ops.max(blocks, axis=-1), k)
    best = ops.sort(ops.cast(best, "int32"), axis=-1)  # ties go by the order of ids
    values = ops.reshape(gather_beams(blocks, best), (rows, k * BLOCK))
    ids = best[:, :, None] * BLOCK + ops.arange(BLOCK, dtype="int32")
    ids = ops.reshape(ids, (rows, k * BLOCK))
    if count * BLOCK < size:
        last = ops.arange(count * BLOCK, size, dtype="int32")
        last = ops.broadcast_to(last, (rows, size - count * BLOCK))
        ids = ops.concatenate([ids, last], axis=1)
        values = ops.concatenate([values, scores[:, count * BLOCK :]], axis=1)
    values, place = ops.top_k(values, k)
    return values, gather_beams(ids, ops.cast(place, "int32"))
