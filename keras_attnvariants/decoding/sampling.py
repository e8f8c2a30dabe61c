"""Ancestral sampling: translations drawn from the model, token by token."""

from typing import Any

from keras import ops

from keras_attnvariants.backend import take
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.greedy_search import GreedySearch
from keras_attnvariants.decoding.greedy_search import most_probable
from keras_attnvariants.decoding.options import check_sampling
from keras_attnvariants.decoding.options import is_per_sentence
from keras_attnvariants.decoding.options import is_used
from keras_attnvariants.decoding.options import per_sentence
from keras_attnvariants.decoding.options import with_rank
from keras_attnvariants.decoding.staged_search import IMPOSSIBLE
from keras_attnvariants.decoding.staged_search import Hypotheses
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.utils.typing import Tensor

# Temperatures below this mean greedy search; dividing logits by less might overflow.
MIN_TEMPERATURE = 1e-6


def sample(
    model: StepModel,
    source_ids: Any,
    temperature: Any = 1.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    seed: Any = 0,
    length_penalty: Any = None,
    min_length: Any = None,
    max_length: Any = None,
    prefix: Any = None,
    block_unknown: Any = False,
    return_alignments: bool = False,
    no_repeat_ngram: Any = None,
) -> Hypotheses:
    """Draws one translation of each sentence from the probabilities of the model.

    Each token is drawn from the `top_k` most probable allowed tokens and, of these,
    from the smallest set whose share of the probability is at least `top_p`. The
    probabilities are the softmax of the logits divided by `temperature`. The random
    numbers depend on the seed and the position alone, not on the other sentences.

    For several translations of a sentence, repeat it with several seeds. Options other
    than `prefix` and `return_alignments` are one value for all sentences or a list
    `[B]`.

    Args:
        temperature: below 1, probable words become more probable; 0 is greedy search.
        top_k: number of words that may be drawn; 0 for all.
        top_p: above 0, at most 1; total probability of the words that may be drawn.
        seed: from 0 to `2 ** 31 - 1`. With a single seed, the random numbers of a
            sentence depend on its place. With a list, a sentence has the same
            translation as alone with its seed.
        model, source_ids, length_penalty, min_length, max_length, prefix,
            block_unknown, return_alignments, no_repeat_ngram: as for `beam_search`.

    Returns:
        `Hypotheses` with `N = 1` and `token_log_probs`. Log probabilities are the
        model's, without temperature, `top_k` and `top_p`.

    Raises:
        ValueError: an argument is out of range or of a wrong shape.

    Example:
        >>> import numpy as np
        >>> import keras_attnvariants as kav
        >>> attention = kav.DotProductAttention(num_heads=2)
        >>> model = kav.Transformer(100, 1, 8, 16, attention, attention, attention)
        >>> sources = np.array([[5, 6, 7]] * 3)
        >>> found = kav.decoding.sample(model, sources, seed=[1, 2, 1], max_length=6)
        >>> first, second, third = np.asarray(found.ids).tolist()
        >>> first == third, first == second
        (True, False)
    """
    check_sampling(temperature, top_k, top_p, seed)
    options = (min_length, max_length, prefix, block_unknown, no_repeat_ngram)
    constraints = Constraints(model, source_ids, *options)
    choose = _Sampler(model, constraints, temperature, top_k, top_p, seed)
    wanted = (return_alignments, True, choose, choose.count)
    search = GreedySearch(model, constraints, 1, length_penalty, *wanted)
    return search.hypotheses(search.run())


class _Sampler:
    """Draws one of the candidates; see `sample` for the arguments."""

    def __init__(
        self,
        model: StepModel,
        constraints: Constraints,
        temperature: Any,
        top_k: Any,
        top_p: Any,
        seed: Any,
    ) -> None:
        source_ids = constraints.source_ids
        self.temperature = per_sentence(
            "temperature", temperature, "float32", source_ids
        )
        self.top_k = per_sentence("top_k", top_k, "int32", source_ids)
        self.top_p = per_sentence("top_p", top_p, "float32", source_ids)
        # The tokens need sorting only if the best of them are needed.
        self.count = None
        if is_per_sentence(top_k) or is_per_sentence(top_p) or top_p < 1:
            self.count = model.vocabulary_size
        if not is_per_sentence(top_k) and top_k > 0:
            self.count = top_k
        rows = ops.arange(ops.shape(source_ids)[0], dtype="int32")
        if is_per_sentence(seed):
            seeds = per_sentence("seed", seed, "int32", source_ids)
            streams = ops.zeros_like(rows)
        else:
            seeds, streams = ops.full_like(rows, seed), rows
        seeds, streams = (ops.cast(x, "uint32") for x in (seeds, streams))
        # From 0 to below 1 for each position, float32 `[B, positions]`.
        self.numbers = uniform(seeds, streams, model.max_length)

    def __call__(self, values: Tensor, position: Tensor) -> Tensor:
        """The candidate that comes next, int `[B, 1]`; see `most_probable`."""
        temperature = with_rank(self.temperature, 3)
        distances = values - ops.max(values, axis=-1, keepdims=True)
        weights = ops.exp(distances / ops.maximum(temperature, MIN_TEMPERATURE))
        weights = ops.where(values > IMPOSSIBLE, weights, 0.0)
        weights = self.filtered(weights)
        number = take(self.numbers, position, axis=1)[:, None]
        is_greedy = ops.less(with_rank(self.temperature, 2), MIN_TEMPERATURE)
        best = most_probable(values, position)
        return ops.where(is_greedy, best, draw(weights, number))

    def filtered(self, weights: Tensor) -> Tensor:
        """The weights of tokens, best first, with 0 outside `top_k` and `top_p`."""
        is_possible = weights > 0
        if is_used(self.top_k):
            rank = ops.cumsum(ops.cast(is_possible, "int32"), axis=-1)
            top_k = with_rank(self.top_k, 3)
            kept = ops.less_equal(rank, top_k) | ops.less(top_k, 1)
            weights = ops.where(kept, weights, 0.0)
        if is_per_sentence(self.top_p) or self.top_p < 1:
            sums = ops.cumsum(weights, axis=-1)
            least = with_rank(self.top_p, 3) * sums[:, :, -1:]
            # At 1, all are kept, even if their sum is rounded.
            is_all = ops.greater_equal(with_rank(self.top_p, 3), 1)
            kept = ops.less(sums - weights, least) | is_all
            weights = ops.where(kept, weights, 0.0)
        return weights


def draw(weights: Tensor, number: Tensor) -> Tensor:
    """Draws an index with a probability proportional to its weight.

    Args:
        weights: float32 `[..., M]`, at least one of them positive.
        number: float32 `[...]`, from 0 to below 1.

    Returns:
        int32 `[...]`, indices of positive weights.
    """
    sums = ops.cumsum(weights, axis=-1)
    is_beyond = (sums > number[..., None] * sums[..., -1:]) & (weights > 0)
    # In a compiled program, sums need not be monotonic, and none may be beyond.
    found = ops.any(is_beyond, axis=-1)
    first = ops.argmax(ops.cast(is_beyond, "int32"), axis=-1)
    return ops.where(found, first, ops.argmax(weights, axis=-1))


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def uniform(seeds: Tensor, streams: Tensor, count: int) -> Tensor:
    """Random numbers from 0 to below 1, in steps of `2 ** -24`.

    Args:
        seeds, streams: uint32 `[B]`; each pair has its own sequence of numbers.
        count: number of random numbers per pair.

    Returns:
        float32 `[B, count]`.
    """
    counters = ops.cast(ops.arange(count, dtype="int32"), "uint32")[None]
    bits, _ = threefry(
        (seeds[:, None], streams[:, None]), (counters, ops.zeros_like(counters))
    )
    bits = ops.bitwise_right_shift(bits, to_uint32(8))
    return ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-24


def threefry(
    key: tuple[Tensor, Tensor], counter: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Threefry-2x32 in 20 rounds (Salmon et al. 2011): uint32 in and out."""
    parity = ops.bitwise_xor(ops.bitwise_xor(*key), to_uint32(PARITY))
    keys = (*key, parity)
    # Not `ops.add`, which takes some operands for biases.
    x, y = (number + part for number, part in zip(counter, key, strict=True))
    for block in range(5):
        for bits in ROTATIONS[block % 2]:
            x = x + y
            y = ops.bitwise_xor(rotate_left(y, bits), x)
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + to_uint32(block + 1)
    return x, y


def rotate_left(x: Tensor, bits: int) -> Tensor:
    """The bits of uint32, rotated to the left."""
    return ops.bitwise_or(
        ops.bitwise_left_shift(x, to_uint32(bits)),
        ops.bitwise_right_shift(x, to_uint32(32 - bits)),
    )


def to_uint32(number: Any) -> Tensor:
    """A number as uint32."""
    return ops.convert_to_tensor(number, dtype="uint32")
