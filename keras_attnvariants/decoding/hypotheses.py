"""Hypotheses: during a search, as its results, and the scores that rank them."""

import copy
from typing import Any
from typing import NamedTuple

import numpy as np
from keras import ops

from keras_attnvariants.backend import take
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.options import is_per_sentence
from keras_attnvariants.decoding.options import known_values
from keras_attnvariants.decoding.options import per_sentence
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.decoding.step_model import take_rows
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.typing import Tensor

# The log probability of a forbidden token or an empty slot of the beam. Finite, because
# infinities turn into NaN as soon as they are multiplied by zero, and far below any sum
# of real log probabilities.
IMPOSSIBLE = -1e30

# Sums and products with `IMPOSSIBLE` are below this; real log probabilities above.
_BARELY_POSSIBLE = IMPOSSIBLE / 1e6


class Hypotheses(NamedTuple):
    """The `N` best translations of each of `B` sentences, best first.

    Each hypothesis ends with EOS and is padded with PAD to `T` positions. If a search
    finds fewer than `N`, the missing ones consist of PAD only, with length 0 and with
    `IMPOSSIBLE` (-1e30) as score and log probability.

    Attributes:
        ids: int32 `[B, N, T]`, tokens with their EOS.
        scores: float32 `[B, N]`, log probability after length normalization.
        log_probs: float32 `[B, N]`, log probability of the tokens with EOS.
        lengths: int32 `[B, N]`, number of tokens, EOS included.
        alignments: float32 `[B, N, T, S]`, attention over the source from which each
            token was predicted, 0 after EOS; `None` unless requested.
        token_log_probs: float32 `[B, N, T]`, log probability of each token, 0 after
            EOS; their sum is `log_probs`. `None` unless requested.
    """

    ids: Tensor
    scores: Tensor
    log_probs: Tensor
    lengths: Tensor
    alignments: Tensor | None = None
    token_log_probs: Tensor | None = None


def is_possible(log_probs: Tensor) -> Tensor:
    """Which log probabilities are those of real hypotheses: bool, elementwise."""
    return log_probs > _BARELY_POSSIBLE


def length_factors(max_length: int, exponent: Any) -> np.ndarray:
    """`((5 + 1) / (5 + length)) ** exponent` for the lengths `0..max_length`.

    A log probability times the factor of its length is the score of Wu et al. (2016),
    eq. 14, without coverage. A table computed by NumPy is monotonic to the last bit on
    every backend, which the stop rule of the beam search relies on.

    Args:
        max_length: the largest length.
        exponent: a number, or one per sentence, `[B]`.

    Returns:
        float32 `[max_length + 1]`, or `[B, max_length + 1]`.
    """
    lengths = np.arange(max_length + 1, dtype=np.float64)
    factors = (6.0 / (5.0 + lengths)) ** np.asarray(exponent)[..., None]
    return factors.astype(np.float32)


class LengthNormalization:
    """The factors that turn log probabilities into scores, see `length_factors`.

    Args:
        model: a step model.
        exponent: the length penalty, a number or one for each sentence, `[B]`; `None`
            for that of the model's `search_settings`.
        constraints: with the sentences and their limits.

    Raises:
        ValueError: an exponent is not finite, or there is not one per sentence.
    """

    def __init__(
        self, model: StepModel, exponent: Any, constraints: Constraints
    ) -> None:
        if not is_per_sentence(exponent):
            settings = SearchSettings.of(model, length_penalty=exponent)
            exponent = settings.length_penalty
        limits = constraints.limits
        # A search looks one position further than its last one.
        longest = model.max_length + 1
        values = per_sentence(
            "length_penalty", exponent, "float32", constraints.source_ids
        )
        if ops.is_tensor(exponent):
            lengths = np.arange(longest + 1, dtype="float32")
            table = ops.power(6.0 / (5.0 + lengths), values[:, None])
        else:
            for (value,) in known_values(exponent):
                check_finite("length_penalty", value)
            table = ops.convert_to_tensor(length_factors(longest, exponent))
        shape = (ops.shape(limits)[0], longest + 1)
        self._table = ops.broadcast_to(table, shape)
        self._at_limit = self.of(limits[:, None])[:, 0]
        is_one = not is_per_sentence(values)
        self._longer_is_better = bool(values >= 0) if is_one else values >= 0

    def take(self, rows: Tensor | None) -> "LengthNormalization":
        """The factors of some sentences, or of all if `rows` is `None`."""
        part = copy.copy(self)
        part._table = take_rows(self._table, rows)
        part._at_limit = take_rows(self._at_limit, rows)
        if not isinstance(self._longer_is_better, bool):
            part._longer_is_better = take_rows(self._longer_is_better, rows)
        return part

    def of(self, lengths: Tensor) -> Tensor:
        """The factors of lengths, int32 `[B, N]`: float32 of the same shape."""
        return gather_beams(self._table, lengths)

    def at(self, length: Tensor) -> Tensor:
        """The factors of one length, an int32 scalar: float32 `[B, 1]`."""
        return take(self._table, length, axis=1)[:, None]

    def best_from(self, length: Tensor) -> Tensor:
        """The factors by which hypotheses of at least a length lose least, `[B]`."""
        if self._longer_is_better is True:
            return self._at_limit
        shortest = self.at(length)[:, 0]
        if self._longer_is_better is False:
            return shortest
        return ops.where(self._longer_is_better, self._at_limit, shortest)


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
        log_probs: log probabilities of the `M` longer ones, `[B, M]`.
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
