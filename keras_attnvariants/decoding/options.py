"""Options of a search, such as the length penalty, and token ids.

An option has one value for all sentences, or one for each.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attnvariants.backend import take
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.decoding.step_model import gather_beams
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_seed
from keras_attnvariants.utils.typing import Tensor

# Names of dtypes in messages.
KINDS = {"int32": "integer", "float32": "number", "bool": "bool"}


def is_per_sentence(value: Any) -> bool:
    """Whether a value has an axis of sentences, or is meant to have one."""
    return bool(ops.is_tensor(value)) or np.ndim(value) > 0


def known_values(option: Any) -> list[Any]:
    """The known values of an option: none if it is a tensor.

    In a graph, the values of tensors are not known, and they are not checked.
    """
    return [] if ops.is_tensor(option) else np.ravel(option).tolist()


def largest(option: Any, unknown: int) -> int:
    """The largest value of an option, or `unknown` if it is a tensor."""
    return unknown if ops.is_tensor(option) else max(known_values(option), default=0)


def per_sentence(name: str, value: Any, dtype: str, source_ids: Tensor) -> Any:
    """A single value as it is, or the values of the sentences as a tensor `[B]`.

    Args:
        name: name of the option, for messages.
        value: value of the option.
        dtype: one of `KINDS`.
        source_ids: int `[B, S]`.

    Raises:
        ValueError: there is not one value per sentence, or the kind is wrong.
    """
    if not is_per_sentence(value):
        return value
    values = ops.convert_to_tensor(value)
    found = keras.backend.standardize_dtype(values.dtype)
    kinds = {"int32": ("int",), "float32": ("int", "float"), "bool": ("bool",)}[dtype]
    sizes = {source_ids.shape[0], *values.shape} - {None}
    fits = len(values.shape) == 1 and len(sizes) < 2
    if not fits or not any(kind in found for kind in kinds):
        raise ValueError(
            f"`{name}` must be one {KINDS[dtype]}, or a tensor with one per sentence. "
            f"Received: shape {tuple(values.shape)}, dtype {found}, with source_ids of "
            f"shape {tuple(source_ids.shape)}"
        )
    return ops.cast(values, dtype)


def with_rank(value: Any, rank: int) -> Any:
    """Values `[B]` with axes of size 1 behind them, or a single value as it is."""
    if not is_per_sentence(value):
        return value
    return ops.reshape(value, (-1, *[1] * (rank - 1)))


def is_used(value: Any) -> bool:
    """Whether an option may have an effect: not if it is 0 or False for all."""
    return is_per_sentence(value) or bool(value)


def check_lengths(min_length: Any, max_length: Any, model_max_length: int) -> None:
    """Raises `ValueError` unless the known lengths make sense together.

    Among values per sentence, a `max_length` of 0 is the default, as `None` is.
    """
    lowest, longest = known_values(min_length) or [0], known_values(max_length)
    if is_per_sentence(max_length):
        longest = [length or None for length in longest] or [None]
    for low, high in np.broadcast(np.array(lowest, object), np.array(longest, object)):
        check_integer("min_length", low, minimum=0)
        limit = check_optional_integer("max_length", high) or model_max_length
        if limit > model_max_length:
            raise ValueError(
                f"`max_length` must be at most that of the model ({model_max_length}). "
                f"Received: {high}"
            )
        if low >= limit:
            raise ValueError(
                f"`min_length` must be below {limit}, because it does not count EOS. "
                f"Received: {low}"
            )


def check_sampling(temperature: Any, top_k: Any, top_p: Any, seed: Any) -> None:
    """Raises `ValueError` if a known value of an option is out of range."""
    for value in known_values(temperature):
        if check_finite("temperature", value) < 0:
            raise ValueError(f"`temperature` must not be negative. Received: {value}")
    for value in known_values(top_k):
        check_integer("top_k", value, minimum=0)
    for value in known_values(top_p):
        if not 0 < check_finite("top_p", value) <= 1:
            raise ValueError(f"`top_p` must be above 0, at most 1. Received: {value}")
    for value in known_values(seed):
        check_seed("seed", value)


def check_sizes(name: str, values: Any, largest: int | None = None) -> tuple[int, ...]:
    """The distinct integers among `values`, cut off at `largest`, in ascending order.

    Raises:
        ValueError: `values` is not a sequence of positive integers, or it is empty.
    """
    if not isinstance(values, Sequence) or not values:
        raise ValueError(
            f"`{name}` must be a non-empty sequence of integers. Received: {values!r}"
        )
    sizes = (check_integer(name, value) for value in values)
    return tuple(sorted({min(size, largest or size) for size in sizes}))


def to_token_ids(name: str, ids: Any) -> Tensor:
    """`ids` as an int32 tensor `[B, length]`.

    Raises:
        ValueError: they are not integers of two axes.
    """
    ids = ops.convert_to_tensor(ids)
    is_integer = "int" in keras.backend.standardize_dtype(ids.dtype)
    if len(ids.shape) != 2 or not is_integer:
        raise ValueError(
            f"`{name}` must be a tensor of integers [batch, length]. Received: "
            f"shape {tuple(ids.shape)}, dtype {ids.dtype}"
        )
    return ops.cast(ids, "int32")


def count_tokens(ids: Tensor, pad_id: int) -> Tensor:
    """The number of ids along the last axis that are not padding, int32."""
    return ops.sum(ops.cast(ops.not_equal(ids, pad_id), "int32"), axis=-1)


def length_factors(max_length: int, exponent: Any) -> np.ndarray:
    """`((5 + 1) / (5 + length)) ** exponent` for the lengths `0..max_length`.

    A log probability times the factor of its length is the score of Wu et al. (2016),
    eq. 14, without coverage. NumPy computes the table, which is therefore monotonic to
    the last bit on every backend. The stop rule of the beam search relies on that.

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
        source_ids: int32 `[B, S]`.
        limits: int32 `[B]`, the largest length of each translation.

    Raises:
        ValueError: an exponent is not finite, or a sentence has none.
    """

    def __init__(
        self, model: StepModel, exponent: Any, source_ids: Tensor, limits: Tensor
    ) -> None:
        if not is_per_sentence(exponent):
            settings = SearchSettings.of(model, length_penalty=exponent)
            exponent = settings.length_penalty
        # A search reads the factor of one position after its last one.
        longest = model.max_length + 1
        values = per_sentence("length_penalty", exponent, "float32", source_ids)
        if ops.is_tensor(exponent):
            lengths = np.arange(longest + 1, dtype="float32")
            table = ops.power(6.0 / (5.0 + lengths), values[:, None])
        else:
            for value in known_values(exponent):
                check_finite("length_penalty", value)
            table = ops.convert_to_tensor(length_factors(longest, exponent))
        shape = (ops.shape(limits)[0], longest + 1)
        self._table = ops.broadcast_to(table, shape)
        self._at_limit = self.of(limits[:, None])[:, 0]

    def of(self, lengths: Tensor) -> Tensor:
        """The factors of lengths, int32 `[B, N]`: float32 of the same shape."""
        return gather_beams(self._table, lengths)

    def at(self, length: Tensor) -> Tensor:
        """The factors of one length, an int32 scalar: float32 `[B, 1]`."""
        return take(self._table, length, axis=1)[:, None]

    def best_from(self, length: Tensor) -> Tensor:
        """The best factors of hypotheses that have at least this length, `[B]`."""
        return ops.minimum(self.at(length)[:, 0], self._at_limit)
