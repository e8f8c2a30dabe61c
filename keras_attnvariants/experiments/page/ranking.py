"""Compares systems by quality and by cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import ge

from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.evaluation.significance import LEVEL
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.result_parts import COSTS
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import ScoreSummary

# Costs to weigh quality against: the chart shows the first that is known.
WEIGHED = ("seconds", "parameters", "sentences_per_second", "memory_mib")
# The tests of the summary, by field of `Difference`; the first decides.
TESTS = {
    "dunnett": "Dunnett test over seeds",
    "bootstrap_holm": "paired bootstrap over sentences",
}


def cost_values(result: ComparisonResult) -> dict[str, dict[str, float]]:
    """The known costs by name and system, in the displayed units."""
    costs: dict[str, dict[str, float]] = {}
    for system in result.systems:
        for name, value in result.costs(system.name).items():
            if value is not None:
                costs.setdefault(name, {})[system.name] = COSTS[name].factor * value
    return {name: costs[name] for name in COSTS if name in costs}


def main_cost(result: ComparisonResult) -> str:
    """The cost that quality is weighed against: the first that is known."""
    known = cost_values(result)
    return next((name for name in WEIGHED if name in known), WEIGHED[0])


@dataclass(frozen=True)
class Ranking:
    """All systems under one metric on one test set.

    Attributes:
        result: the comparison.
        test_set, metric: their names.
    """

    result: ComparisonResult
    test_set: str
    metric: str

    @classmethod
    def main(cls, result: ComparisonResult) -> "Ranking":
        """By the first metric on the first test set."""
        return cls(result, result.test_sets[0].name, result.metrics[0])

    @property
    def sign(self) -> int:
        """-1 if less is better."""
        return 1 if higher_is_better(self.metric.lower()) else -1

    @cached_property
    def scores(self) -> dict[str, ScoreSummary]:
        """The scores of the systems that have one, best first."""
        return self._scores_of([system.name for system in self.result.systems])

    @property
    def untrained(self) -> dict[str, ScoreSummary]:
        """The scores of texts that need no model, best first."""
        return self._scores_of(self.result.untrained)

    def _scores_of(self, names: Sequence[str]) -> dict[str, ScoreSummary]:
        where = self.test_set, self.metric
        known = [score for name in names if (score := self.result.score(name, *where))]
        known.sort(key=lambda score: -self.sign * score.mean)
        return {score.system: score for score in known}

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """The differences from the baseline, by system, in the order of the scores."""
        where = self.test_set, self.metric
        return {
            name: row
            for name in self.scores
            if (row := self.result.difference(name, *where))
        }

    @property
    def best(self) -> list[str]:
        """The system with the best mean, and those whose displayed mean is equal."""
        shown = {name: fixed(score.mean) for name, score in self.scores.items()}
        return [name for name in shown if shown[name] == next(iter(shown.values()))]

    def verdict(self, system: str, test: str = "") -> str:
        """`"better"`, `"worse"` or `"alike"` by a test, or `"baseline"`.

        Args:
            system: name of the system.
            test: one of `TESTS`; by default the one that decides.
        """
        if (found := self.differences.get(system)) is None:
            return "baseline"
        if self.p_values(test or self.decides).get(system, 1.0) >= LEVEL:
            return "alike"
        return "better" if self.sign * found.difference > 0 else "worse"

    @property
    def decides(self) -> str:
        """The test that decides: the first available one."""
        return next(filter(self.p_values, TESTS), "bootstrap_holm")

    @property
    def power(self) -> tuple[float, int | None] | None:
        """The largest `detectable` difference, and the `seeds_needed` for it."""
        rows = self.differences.values()
        known = ((r.detectable, r.seeds_needed) for r in rows if r.detectable)
        return max(known, default=None)

    def p_values(self, test: str) -> dict[str, float]:
        """The corrected p-values of a test by system, if available."""
        rows = self.differences.items()
        found = {name: getattr(row, test) for name, row in rows}
        return {name: value for name, value in found.items() if value is not None}

    def significant(self, test: str) -> dict[str, list[str]]:
        """The systems that differ from the baseline by a test: better, and worse."""
        return {
            word: [
                name for name in self.differences if self.verdict(name, test) == word
            ]
            for word in ("better", "worse")
        }

    def tested(self, system: str) -> dict[bool, list[str]]:
        """The tests by which a system differs significantly, and the other tests."""
        groups: dict[bool, list[str]] = {True: [], False: []}
        for test, words in TESTS.items():
            if system in (values := self.p_values(test)):
                groups[values[system] < LEVEL].append(words)
        return groups

    def front(self, cost: str) -> list[str]:
        """The systems that no other dominates in score and cost, cheapest first."""
        sign = 1 if COSTS[cost].more_is_better else -1
        points = {
            name: (sign * value, self.sign * self.scores[name].mean)
            for name, value in cost_values(self.result).get(cost, {}).items()
            if name in self.scores
        }
        return [
            name
            for name in sorted(points, key=points.__getitem__, reverse=True)
            if not any(beats(other, points[name]) for other in points.values())
        ]


def beats(point: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether a point is at least as good as another everywhere and better in one."""
    return point != other and all(map(ge, point, other))
