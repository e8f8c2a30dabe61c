"""The equal budget of all trials of a search, in updates, minutes or tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive

# Steps of a run that ends when its time is up.
WITHOUT_END = 10**9


@dataclass(frozen=True)
class Budget:
    """An equal budget for all trials; exactly one of the first three is given.

    Attributes:
        updates: number of updates.
        minutes: time for updates and validations together. The result depends on the
            machine, and on what else it does.
        tokens: source and target positions, so that a trial with larger batches has
            fewer updates.
        validations: number of parts of equal length, each with a validation at its
            end. In Hyperband, they are the epochs.
        validate_every: updates of a part if the budget is in minutes.

    Raises:
        ValueError: none or several are given, or a number is out of range.

    Example:

    >>> Budget(updates=1000).describe()
    '1,000 updates'
    """

    updates: int | None = None
    minutes: float | None = None
    tokens: int | None = None
    validations: int = 9
    validate_every: int = 200

    def __post_init__(self) -> None:
        given = [v for v in (self.updates, self.minutes, self.tokens) if v is not None]
        if len(given) != 1:
            raise ValueError(
                "A budget must be one of `updates`, `minutes` and `tokens`. "
                f"Received: {len(given)} of them"
            )
        check_optional_integer("updates", self.updates)
        check_optional_integer("tokens", self.tokens)
        if self.minutes is not None:
            check_positive("minutes", self.minutes)
        check_integer("validations", self.validations)
        check_integer("validate_every", self.validate_every)

    def describe(self) -> str:
        """The budget in words."""
        if self.minutes is not None:
            return f"{self.minutes:g} minutes"
        if self.tokens is not None:
            return f"{self.tokens:,} tokens"
        return f"{self.updates:,} updates"

    def period(self, batch_tokens: int) -> int:
        """Updates between two validations.

        Args:
            batch_tokens: source and target positions of an update.
        """
        if self.minutes is not None:
            return self.validate_every
        return max(1, self._all_steps(batch_tokens) // self.validations)

    def steps(self, batch_tokens: int, parts: int) -> int:
        """Updates of a trial that may spend the first parts of the budget."""
        steps = self._all_steps(batch_tokens)
        if self.minutes is not None or parts >= self.validations:
            return steps
        return min(steps, parts * self.period(batch_tokens))

    def training(
        self, batch_tokens: int, given: Mapping[str, Any], parts: int
    ) -> dict[str, Any]:
        """Fields of `TrainingConfig` of a trial that may spend the first parts.

        Args:
            batch_tokens: source and target positions of a batch.
            given: other fields, which `save_every` and `log_every` may be among.
            parts: of the budget.
        """
        update_tokens = batch_tokens * given.get("accumulate", 1)
        period = self.period(update_tokens)
        return {
            "save_every": max(1, min(100, period)),
            "log_every": max(1, min(100, period // 2)),
            **given,
            "steps": self.steps(update_tokens, parts),
            "validate_every": period,
        }

    def time_limit(self, parts: int) -> float | None:
        """Minutes for the first parts of the budget; `None` if it is not in minutes."""
        if self.minutes is None:
            return None
        return self.minutes * min(1.0, parts / self.validations)

    def _all_steps(self, batch_tokens: int) -> int:
        if self.minutes is not None:
            return WITHOUT_END
        if self.tokens is not None:
            return max(1, self.tokens // batch_tokens)
        return self.updates or 0
