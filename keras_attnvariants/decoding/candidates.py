"""The best next tokens, out of a vocabulary that is far larger than their number."""

from keras import ops

from keras_attnvariants.decoding.step_model import gather_beams

BLOCK = 32


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
