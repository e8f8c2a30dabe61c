"""The results of a search, and the length normalization that ranks them."""

from typing import Any
from typing import NamedTuple

import numpy as np

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
