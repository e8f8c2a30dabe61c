"""A trial: a point of the space, trained in runs with an equal budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.training import TimeLimit
from keras_attnvariants.training import TrainingResult
from keras_attnvariants.training import train_preset
from keras_attnvariants.training.fine_tuning import fine_tuning_from
from keras_attnvariants.training.run_settings import copy_vocabulary
from keras_attnvariants.tuning.results import RECORD
from keras_attnvariants.tuning.results import TrialRecord
from keras_attnvariants.tuning.results import measure_runs
from keras_attnvariants.tuning.results import peak_mib
from keras_attnvariants.tuning.results import reset_peak_memory
from keras_attnvariants.tuning.space import TrialArguments
from keras_attnvariants.utils.checks import check_integer
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.checks import check_positive
from keras_attnvariants.utils.records import write_record

if TYPE_CHECKING:
    from keras_attnvariants.tuning.search import Search

# Steps of a run with a time limit.
NO_STEP_LIMIT = 10**9


@dataclass(frozen=True)
class Budget:
    """An equal budget for all trials; exactly one of the first three is given.

    Attributes:
        updates: number of updates.
        minutes: time for updates and validations together. The result depends on the
            machine and its load.
        tokens: source and target positions, so that a trial with larger batches has
            fewer updates.
        validations: number of parts of equal length, each of which ends with a
            validation.
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

    def steps(self, batch_tokens: int) -> int:
        """Updates of a run.

        Args:
            batch_tokens: source and target positions of an update.
        """
        if self.minutes is not None:
            return NO_STEP_LIMIT
        return self.updates or max(1, (self.tokens or 0) // batch_tokens)

    def training(self, batch_tokens: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of `TrainingConfig` of a run.

        Args:
            batch_tokens: source and target positions of a batch.
            given: other fields, which may include `save_every` and `log_every`.

        Raises:
            ValueError: `accumulate` is out of range.
        """
        accumulate = check_integer("accumulate", given.get("accumulate", 1))
        steps = self.steps(batch_tokens * accumulate)
        period = max(1, steps // self.validations)
        if self.minutes is not None:
            period = self.validate_every
        return {
            "save_every": max(1, min(100, period)),
            "log_every": max(1, min(100, period // 2)),
            **given,
            "steps": steps,
            "validate_every": period,
        }

    def limits(self) -> list[TimeLimit]:
        """The callback that limits the time of a run, if the budget is in minutes."""
        return [] if self.minutes is None else [TimeLimit(self.minutes)]


def run_trial(search: "Search", folder: Path, values: Mapping[str, Any]) -> TrialRecord:
    """Train or continue a trial, and write its record.

    Args:
        search: search of the trial.
        folder: folder of the trial, inside the folder of the search.
        values: the point of the space, as keras-tuner stores it.
    """
    reset_peak_memory()
    point = search.space.arguments(search.preset, values)
    choose = max if higher_is_better(search.objective) else min
    scores, steps = {}, []
    for seed in search.seeds:
        run = folder / f"seed-{seed}"
        copy_vocabulary(search.folder, run)
        result = train(search, run, seed, point)
        # `load_run` loads the better model.
        found = [s for s in (result.best, result.averaged) if s is not None]
        scores[seed] = choose(found)
        steps.append(result.step)
        keras.utils.clear_session()
    speed, minutes = measure_runs([folder / f"seed-{seed}" for seed in search.seeds])
    record = TrialRecord(
        trial=folder.name.removeprefix("trial_"),
        values=dict(values),
        scores=tuple(scores.values()),
        updates=max(steps),
        parameters=search.preset.count(search.vocabulary_size, **point.sizes),
        tokens_per_second=speed,
        memory_mib=peak_mib(),
        minutes=minutes,
        best_seed=choose(scores, key=scores.__getitem__),
    )
    write_record(folder / RECORD, record)
    return record


def train(
    search: "Search", run: Path, seed: int, arguments: TrialArguments
) -> TrainingResult:
    """Train or continue one run of a trial.

    Args:
        search: search of the trial.
        run: folder of the run.
        seed: seed of the run.
        arguments: the point of the space.
    """
    budget = search.budget
    batch_tokens = arguments.batch_tokens or search.preset.training.batch_tokens
    given = {**search.settings, **arguments.settings}
    return train_preset(
        search.preset,
        search.corpus,
        run,
        fine_tuning=fine_tuning_from(search.continue_from),
        vocabulary_size=search.vocabulary_size,
        subwords=search.subwords,
        batch_tokens=batch_tokens,
        sizes=arguments.sizes,
        settings=budget.training(batch_tokens, given),
        precision=search.precision,
        seed=seed,
        score_sentences=0 if search.objective == "loss" else search.score_sentences,
        samples=0,
        callbacks=budget.limits(),
        verbose=0,
    )
