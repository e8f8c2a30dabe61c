"""Log probabilities of given translations."""

from typing import Any

from keras import ops

from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.token_ids import count_tokens
from keras_attnvariants.decoding.token_ids import to_token_ids
from keras_attnvariants.utils.typing import Tensor


def score(model: StepModel, source_ids: Any, target_ids: Any) -> tuple[Tensor, Tensor]:
    """Log probability of target sentences and their EOS, given source sentences.

    One teacher-forced pass over all positions. The result equals the `log_probs` with
    which a search found the same tokens, and is not normalized by length. Only an empty
    source differs: a search gives its empty translation probability 1, without asking
    the model.

    Args:
        model: called with `{"source_ids": [B, S], "target_ids": [B, T + 1]}` (the
            target after BOS), it returns logits `[B, T + 1, V]`.
        source_ids: int `[B, S]`, padded on the right.
        target_ids: int `[B, T]` without BOS and EOS, padded on the right.

    Returns:
        Log probabilities, float32 `[B]`, and lengths, int32 `[B]`, EOS included.

    Raises:
        ValueError: ids are not integers of two axes.

    Example:
        >>> import numpy as np
        >>> import keras_attnvariants as kav
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
        >>> log_probs, lengths = score(
        ...     model, np.array([[5, 6], [7, 0]]), np.array([[8, 9, 9], [9, 0, 0]])
        ... )
        >>> np.asarray(lengths).tolist()
        [4, 2]
    """
    source_ids = to_token_ids("source_ids", source_ids)
    target_ids = to_token_ids("target_ids", target_ids)
    batch, steps = ops.shape(target_ids)
    column = ops.full((batch, 1), model.pad_id, dtype="int32")
    inputs = ops.concatenate([ops.full_like(column, model.bos_id), target_ids], axis=1)
    labels = ops.concatenate([target_ids, column], axis=1)
    positions = ops.arange(steps + 1, dtype="int32")
    ends = count_tokens(target_ids, model.pad_id)[:, None]
    labels = ops.where(ops.equal(positions, ends), model.eos_id, labels)
    logits = model({"source_ids": source_ids, "target_ids": inputs}, training=False)
    logits = ops.cast(logits, "float32")
    chosen = ops.take_along_axis(logits, labels[:, :, None], axis=-1)[:, :, 0]
    log_probs = chosen - ops.logsumexp(logits, axis=-1)
    log_probs = ops.where(positions <= ends, log_probs, 0.0)
    return ops.sum(log_probs, axis=1), ends[:, 0] + 1
