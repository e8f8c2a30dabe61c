"""The sentences of a request one by one: which can be translated, and which were."""

import tensorflow as tf

from keras_attnvariants.decoding import IMPOSSIBLE
from keras_attnvariants.decoding import Hypotheses
from keras_attnvariants.serving.status import Status
from keras_attnvariants.utils.typing import Tensor


def status_of_ids(
    ids: Tensor, lengths: Tensor, vocabulary_size: int, pad_id: int
) -> Tensor:
    """Whether rows of ids can be translated.

    Args:
        ids: int32 `[B, S]`; what is beyond the lengths is not looked at.
        lengths: int32 `[B]`.
        vocabulary_size: ids from 0 to below this are known.
        pad_id: of padding.

    Returns:
        int32 `[B]`, the first `Status` that applies.
    """
    width = tf.shape(ids)[1]
    is_read = tf.sequence_mask(lengths, width)
    problems = {
        Status.PADDING_INSIDE: tf.reduce_any(is_read & tf.equal(ids, pad_id), axis=1),
        Status.UNKNOWN_ID: tf.reduce_any(
            is_read & ((ids < 0) | (ids >= vocabulary_size)), axis=1
        ),
        Status.WRONG_LENGTH: (lengths < 0) | (lengths > width),
    }
    status = tf.zeros_like(lengths)
    for code, applies in problems.items():
        status = tf.where(applies, int(code), status)
    return status


def status_of_search(found: Hypotheses, status: Tensor) -> Tensor:
    """The status `[B]` of each row after a search, from that before it."""
    is_missing = tf.equal(found.lengths[:, 0], 0)
    nothing = tf.where(is_missing, int(Status.NOTHING_FOUND), int(Status.OK))
    return tf.where(tf.equal(status, int(Status.OK)), nothing, status)


def without_failed(found: Hypotheses, status: Tensor, pad_id: int) -> Hypotheses:
    """Hypotheses, where a row with another status than `OK` has none.

    As in `Hypotheses`, one that is missing consists of padding, with length 0 and
    `IMPOSSIBLE` as its score.
    """
    is_ok = tf.equal(status, int(Status.OK))[:, None]
    of_tokens = {
        "alignments": found.alignments,
        "token_log_probs": found.token_log_probs,
    }
    return found._replace(
        ids=tf.where(is_ok[:, :, None], found.ids, pad_id),
        scores=tf.where(is_ok, found.scores, IMPOSSIBLE),
        log_probs=tf.where(is_ok, found.log_probs, IMPOSSIBLE),
        lengths=tf.where(is_ok, found.lengths, 0),
        **{
            name: tf.where(broadcast(is_ok, value), value, 0.0)
            for name, value in of_tokens.items()
            if value is not None
        },
    )


def broadcast(rows: Tensor, values: Tensor) -> Tensor:
    """`[B, 1]` with as many axes as `values`."""
    return tf.reshape(rows, [-1] + [1] * (len(values.shape) - 1))
