"""Hypotheses during a beam search: what each has so far, and choosing among them."""

from typing import NamedTuple

from keras import ops

from keras_attnvariants.decoding.states import gather_beams
from keras_attnvariants.utils.typing import Tensor


class Beams(NamedTuple):
    """`M` hypotheses per sentence.

    Attributes:
        log_probs: float32 `[B, M]`.
        paths: `[B, M, T]` each, 0 or PAD where there is no token yet: the `ids`
            (int32) and, if they are wanted, the beams that predicted each of them
            (`parents`, int32) and their log probabilities (`gains`, float32).
    """

    log_probs: Tensor
    paths: dict[str, Tensor]


def select(beams: Beams, log_probs: Tensor, choice: Tensor) -> Beams:
    """The hypotheses `choice` `[B, J]`, with their log probabilities `[B, J]`."""
    paths = {name: gather_beams(path, choice) for name, path in beams.paths.items()}
    return Beams(log_probs, paths)


def extended(
    beams: Beams,
    log_probs: Tensor,
    parents: Tensor,
    new: dict[str, Tensor],
    position: Tensor,
) -> Beams:
    """Hypotheses that are one position longer than their parents.

    Args:
        beams: `K` hypotheses.
        log_probs: of the `M` longer ones, `[B, M]`.
        parents: int32 `[B, M]`.
        new: what each path has at the position, `[B, M]` by name.
        position: int32 scalar.
    """
    steps = ops.shape(beams.paths["ids"])[-1]
    is_now = ops.equal(ops.arange(steps, dtype="int32"), position)
    paths = {
        name: ops.where(is_now, new[name][:, :, None], gather_beams(path, parents))
        for name, path in beams.paths.items()
    }
    return Beams(log_probs, paths)


def joined(first: Beams, second: Beams) -> Beams:
    """All hypotheses of both, of the same paths."""
    paths = {
        name: ops.concatenate([path, second.paths[name]], axis=1)
        for name, path in first.paths.items()
    }
    log_probs = ops.concatenate([first.log_probs, second.log_probs], axis=1)
    return Beams(log_probs, paths)


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
