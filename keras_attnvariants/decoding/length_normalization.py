"""From log probabilities of hypotheses to scores, which rank them."""

import copy
from typing import Any

import numpy as np
from keras import ops

from keras_attnvariants.backend import take
from keras_attnvariants.decoding.constraints import Constraints
from keras_attnvariants.decoding.hypotheses import length_factors
from keras_attnvariants.decoding.per_sentence import is_per_sentence
from keras_attnvariants.decoding.per_sentence import known_values
from keras_attnvariants.decoding.per_sentence import per_sentence
from keras_attnvariants.decoding.states import gather_beams
from keras_attnvariants.decoding.states import take_rows
from keras_attnvariants.decoding.step_model import StepModel
from keras_attnvariants.models import SearchSettings
from keras_attnvariants.utils.checks import check_finite
from keras_attnvariants.utils.typing import Tensor


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
