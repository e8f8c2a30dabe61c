"""Checks of the arguments of a search: each raises `ValueError` in one line."""

from typing import Any

from keras_attnvariants.decoding.per_sentence import is_per_sentence
from keras_attnvariants.decoding.per_sentence import known_values
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.seeds import check_seed


def check_lengths(min_length: Any, max_length: Any, model_max_length: int) -> None:
    """Raises `ValueError` unless the lengths make sense together."""
    check_integer("min_length", min_length, minimum=0)
    check_optional_integer("max_length", max_length)
    longest = model_max_length if max_length is None else max_length
    if longest > model_max_length:
        raise ValueError(
            f"`max_length` must be at most that of the model ({model_max_length}). "
            f"Received: {max_length}"
        )
    if min_length >= longest:
        raise ValueError(
            f"`min_length` must be below {longest}, because it does not count EOS. "
            f"Received: {min_length}"
        )


def check_lengths_of_each(
    min_length: Any, max_length: Any, model_max_length: int
) -> None:
    """The same for values per sentence, of which a `max_length` of 0 is the default."""
    has_default = is_per_sentence(max_length)
    for lowest, longest in known_values(min_length, max_length):
        lowest = 0 if lowest is None else lowest
        longest = None if has_default and longest == 0 else longest
        check_lengths(lowest, longest, model_max_length)


def check_ngrams(sizes: Any) -> None:
    """Raises `ValueError` unless the sizes of n-grams make sense."""
    for (size,) in known_values(sizes):
        check_integer("no_repeat_ngram", 0 if size is None else size, minimum=0)


def check_sampling(temperature: Any, top_k: Any, top_p: Any, seed: Any) -> None:
    """Raises `ValueError` unless what can be known of the options makes sense."""
    for (value,) in known_values(temperature):
        if value is not None and check_finite("temperature", value) < 0:
            raise ValueError(f"`temperature` must not be negative. Received: {value}")
    for (value,) in known_values(top_k):
        if value is not None:
            check_integer("top_k", value, minimum=0)
    for (value,) in known_values(top_p):
        if value is not None and not 0 < check_finite("top_p", value) <= 1:
            raise ValueError(f"`top_p` must be above 0, at most 1. Received: {value}")
    for (value,) in known_values(seed):
        if value is not None:
            check_seed("seed", value)
