"""The best next tokens, out of a vocabulary that is far larger than their number."""

from keras import ops

from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.hypotheses import IMPOSSIBLE
from keras_attnvariants.decoding.states import gather_beams
from keras_attnvariants.utils.typing import Tensor

# Tokens per block of a large vocabulary, see `top_tokens`.
BLOCK = 32


def find_candidates(
    logits: Tensor, constraints: Constraints, position: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best allowed tokens, with some forbidden ones among them.

    The vocabulary is searched once, and its probabilities are summed once. Forbidden
    tokens are marked afterwards, among the few that were found.

    Args:
        logits: `[B, K, V]`.
        constraints: which tokens are allowed.
        position: int32 scalar.
        count: number of allowed tokens to find.

    Returns:
        Logits, float32 `[B, K, M]`, best first but for forbidden tokens, which have
        `IMPOSSIBLE`; tokens, int32 `[B, K, M]`; and the normalizer, to be subtracted
        from logits for log probabilities, float32 `[B, K, 1]`. `M` is at least `count`,
        or `V`.
    """
    batch, beams, size = ops.shape(logits)
    rows = ops.reshape(logits, (batch * beams, size))
    count = min(count + constraints.max_forbidden, size)
    values, tokens = top_tokens(rows, count)
    normalizer = log_sum_exp(rows, values[:, :1], tokens[:, :1])
    forced = constraints.forced_tokens(position)[:, None]
    forced = ops.broadcast_to(forced, (batch, beams))
    forced = ops.reshape(forced, (batch * beams, 1))
    is_forced = ops.not_equal(forced, constraints.pad_id)
    forced_values = ops.cast(ops.take_along_axis(rows, forced, axis=1), "float32")
    allowed = ops.where(
        is_forced,
        ops.equal(ops.arange(count), 0),
        constraints.are_allowed(tokens, position),
    )
    tokens = ops.where(is_forced, forced, tokens)
    values = ops.where(is_forced, forced_values, values)
    # An allowed token of probability 0 is still better than a forbidden one.
    values = ops.where(allowed, ops.maximum(values, IMPOSSIBLE / 2), IMPOSSIBLE)
    values, tokens, normalizer = (
        ops.reshape(x, (batch, beams, -1)) for x in (values, tokens, normalizer)
    )
    return values, tokens, normalizer


def log_sum_exp(logits: Tensor, largest: Tensor, index: Tensor) -> Tensor:
    """`log(sum(exp(logits)))` over the last axis: float32 `[N, 1]`.

    The softmax of the largest logit is `1 / sum(exp(logits - largest))`, and every
    backend has a fast softmax.

    Args:
        logits: `[N, V]`.
        largest, index: the largest logit of each row and its index, `[N, 1]`.
    """
    probabilities = ops.softmax(ops.cast(logits, "float32"), axis=-1)
    probability = ops.take_along_axis(probabilities, index, axis=1)
    return largest - ops.log(probability)


def top_tokens(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` largest of every row, largest first, as `ops.top_k` finds them.

    A large vocabulary is searched in blocks of tokens: the `k` best are in the `k`
    blocks with the largest maxima, and finding a maximum takes a fraction of the time
    of keeping a list. Of equal tokens, those with smaller ids come first.

    Args:
        scores: `[N, V]`, in any float dtype.
        k: at most `V`.

    Returns:
        Values (float32) and ids (int32), `[N, k]` each.
    """
    rows, size = ops.shape(scores)[0], scores.shape[1]
    if size < 4 * k * BLOCK:
        values, ids = ops.top_k(ops.cast(scores, "float32"), k)
        return values, ops.cast(ids, "int32")
    count = size // BLOCK
    blocks = ops.reshape(scores[:, : count * BLOCK], (rows, count, BLOCK))
    _, best = ops.top_k(ops.max(ops.cast(blocks, "float32"), axis=-1), k)
    best = ops.sort(ops.cast(best, "int32"), axis=-1)  # ties go by the order of ids
    values = ops.reshape(gather_beams(blocks, best), (rows, k * BLOCK))
    ids = best[:, :, None] * BLOCK + ops.arange(BLOCK, dtype="int32")
    ids = ops.reshape(ids, (rows, k * BLOCK))
    if count * BLOCK < size:
        last = ops.arange(count * BLOCK, size, dtype="int32")
        last = ops.broadcast_to(last, (rows, size - count * BLOCK))
        ids = ops.concatenate([ids, last], axis=1)
        values = ops.concatenate([values, scores[:, count * BLOCK :]], axis=1)
    values, index = ops.top_k(ops.cast(values, "float32"), k)
    return values, gather_beams(ids, ops.cast(index, "int32"))
