"""Hypotheses during a beam search: what each has so far, and choosing among them."""

from typing import NamedTuple

from keras import ops

from keras_attnvariants.decoding.states import gather_beams
from keras_attnvariants.utils.typing import Tensor


class Beams(NamedTuple):
    """`M` hypotheses per sentence.

    Attributes:
        log_probs: float32 `[B, M]`.
        paths: int32 `[B, M, T]` each: the ids and, for alignments, the beam that
            predicted each of them.
    """

    log_probs: Tensor
    paths: tuple[Tensor, ...]


def select(beams: Beams, log_probs: Tensor, choice: Tensor) -> Beams:
    """The hypotheses `choice` `[B, J]`, with their log probabilities `[B, J]`."""
    return Beams(log_probs, tuple(gather_beams(path, choice) for path in beams.paths))


def collect_alignments(weights: Tensor, beams: Tensor, is_token: Tensor) -> Tensor:
    """The attention from which the tokens of hypotheses were predicted.

    Args:
        weights: float32 `[B, T, K, S]`, of every live beam at every position.
        beams: int32 `[B, N, T]`, the beam that predicted each token.
        is_token: bool `[B, N, T]`, false for padding.

    Returns:
        Float32 `[B, N, T, S]`, 0 for padding.
    """
    batch, steps, width, source_length = ops.shape(weights)
    count = beams.shape[1]
    weights = ops.reshape(weights, (batch, steps * width, source_length))
    index = beams + width * ops.arange(steps, dtype="int32")  # [B, N, T]
    index = ops.reshape(index, (batch, count * steps))
    weights = ops.reshape(
        gather_beams(weights, index), (batch, count, steps, source_length)
    )
    return ops.where(is_token[:, :, :, None], weights, 0.0)
