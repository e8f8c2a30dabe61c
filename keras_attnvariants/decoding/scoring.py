"""Log probabilities of given translations."""

from typing import Any
from typing import NamedTuple

from keras import ops

from keras_attnvariants.backend import as_matrix
from keras_attnvariants.decoding.candidates import top_tokens
from keras_attnvariants.decoding.options import count_tokens
from keras_attnvariants.decoding.options import to_token_ids
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import for_decoding
from keras_attnvariants.models.embeddings import with_token
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.typing import Tensor


class TokenScores(NamedTuple):
    """Log probabilities of each token of a target, given those before it.

    Attributes:
        ids: int32 `[B, T]`, the target with EOS, padded with PAD.
        log_probs: float32 `[B, T]`, 0 after EOS.
        lengths: int32 `[B]`, EOS included.
        best_ids: int32 `[B, T, k]`, the most probable words at each position, best
            first; PAD after EOS. `None` without `k`.
        best_log_probs: float32 `[B, T, k]`, their log probabilities; 0 after EOS.
    """

    ids: Tensor
    log_probs: Tensor
    lengths: Tensor
    best_ids: Tensor | None = None
    best_log_probs: Tensor | None = None


def score(model: StepModel, source_ids: Any, target_ids: Any) -> tuple[Tensor, Tensor]:
    """Log probability of target sentences and their EOS, given source sentences.

    This is one teacher-forced pass over all positions. The result equals the
    `log_probs` of a search for the same tokens, and is not normalized by length. Only
    an empty source differs: a search gives its empty translation probability 1, without
    running the model.

    Args:
        model: returns logits `[B, T + 1, V]` when called with
            `{"source_ids": [B, S], "target_ids": [B, T + 1]}` (BOS and the target).
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
    scores = score_tokens(model, source_ids, target_ids)
    return ops.sum(scores.log_probs, axis=1), scores.lengths


def score_tokens(
    model: StepModel, source_ids: Any, target_ids: Any, k: int = 0
) -> TokenScores:
    """Log probability of every target token, and the most probable words at its place.

    Args:
        model, source_ids, target_ids: as for `score`.
        k: number of words, at most the size of the vocabulary; 0 for none. A smaller
            model can be trained on them (word-level distillation).

    Returns:
        `TokenScores`, with `T + 1` positions.

    Raises:
        ValueError: ids are not integers of two axes, or `k` is out of range.

    Example:
        >>> import numpy as np
        >>> import keras_attnvariants as kav
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
        >>> scores = score_tokens(model, np.array([[5, 6]]), np.array([[8, 9, 9]]), k=5)
        >>> tuple(scores.log_probs.shape), tuple(scores.best_ids.shape)
        ((1, 4), (1, 4, 5))
    """
    if check_integer("k", k, minimum=0) > model.vocabulary_size:
        raise ValueError(
            f"`k` must be at most the size of the vocabulary "
            f"({model.vocabulary_size}). Received: {k}"
        )
    model = for_decoding(model)
    source_ids = to_token_ids("source_ids", source_ids)
    target_ids = to_token_ids("target_ids", target_ids)
    inputs = ops.pad(target_ids, [(0, 0), (1, 0)], constant_values=model.bos_id)
    labels = with_token(target_ids, model.eos_id, model.pad_id)
    logits = model({"source_ids": source_ids, "target_ids": inputs}, training=False)
    logits = ops.cast(logits, "float32")
    normalizers = ops.logsumexp(logits, axis=-1)
    chosen = ops.take_along_axis(logits, labels[:, :, None], axis=-1)[:, :, 0]
    is_token = ops.not_equal(labels, model.pad_id)  # [B, T + 1]
    log_probs = ops.where(is_token, chosen - normalizers, 0.0)
    scores = TokenScores(labels, log_probs, count_tokens(labels, model.pad_id))
    if not k:
        return scores
    values, ids = top_tokens(as_matrix(logits), k)
    values, ids = (ops.reshape(x, (*ops.shape(labels), k)) for x in (values, ids))
    return scores._replace(
        best_ids=ops.where(is_token[:, :, None], ids, model.pad_id),
        best_log_probs=ops.where(
            is_token[:, :, None], values - normalizers[:, :, None], 0.0
        ),
    )
