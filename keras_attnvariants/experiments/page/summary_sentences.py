"""The figures of a comparison in words: what is best, how surely, at what cost."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from keras_attnvariants.experiments.page.english import counted
from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import listed
from keras_attnvariants.experiments.page.english import probability
from keras_attnvariants.experiments.page.english import relation
from keras_attnvariants.experiments.page.english import signed
from keras_attnvariants.experiments.results import COSTS
from keras_attnvariants.experiments.results import LOWER_IS_BETTER
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import ScoreSummary

# What the summary speaks of, if it is known; the first is in the picture.
SPOKEN = ("seconds", "parameters", "sentences_per_second", "memory_mib")
# Below it a corrected p-value is significant.
LEVEL = 0.05
# The two that the summary is about: by the field of `Difference` before `_holm`.
TESTS = {
    "bootstrap": "paired bootstrap over sentences",
    "welch": "t-test over seeds",
}


def cost_values(result: ComparisonResult, name: str) -> dict[str, float]:
    """A cost of each system for which it is known, in the unit that is shown."""
    found = {system.name: result.costs(system.name)[name] for system in result.systems}
    factor = COSTS[name].factor
    return {
        system: factor * value for system, value in found.items() if value is not None
    }


def main_cost(result: ComparisonResult) -> str:
    """The cost that quality is weighed against: the first that is known."""
    known = (name for name in SPOKEN if cost_values(result, name))
    return next(known, SPOKEN[0])


@dataclass(frozen=True)
class Ranking:
    """All systems under one metric on one test set.

    Attributes:
        test_set, metric: their names.
        scores: of the systems that have one, the best first.
        differences: to the baseline, by system.
    """

    test_set: str
    metric: str
    scores: Mapping[str, ScoreSummary]
    differences: Mapping[str, Difference]

    @property
    def sign(self) -> int:
        """-1 if less is better."""
        return -1 if self.metric in LOWER_IS_BETTER else 1

    @property
    def best(self) -> str:
        """The system with the best mean."""
        return next(iter(self.scores))

    def verdict(self, system: str) -> str:
        """`"better"`, `"worse"` or `"alike"` by the bootstrap, or `"baseline"`."""
        found = self.differences.get(system)
        if found is None:
            return "baseline"
        if found.bootstrap_holm is None or found.bootstrap_holm >= LEVEL:
            return "alike"
        return "better" if self.sign * found.difference > 0 else "worse"


def ranking(result: ComparisonResult, test_set: str, metric: str) -> Ranking:
    """The scores of a comparison under one metric on one test set."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    found = [
        score
        for score in result.scores
        if (score.test_set, score.metric) == (test_set, metric)
    ]
    found.sort(key=lambda score: -sign * score.mean)
    return Ranking(
        test_set,
        metric,
        {score.system: score for score in found},
        {
            difference.system: difference
            for difference in result.differences
            if (difference.test_set, difference.metric) == (test_set, metric)
        },
    )


def main_ranking(result: ComparisonResult) -> Ranking:
    """By the first metric on the first test set."""
    return ranking(result, result.test_sets[0].name, result.metrics[0])


def summary(result: ComparisonResult) -> list[str]:
    """Sentences on the main metric, in the order in which they are read."""
    rank = main_ranking(result)
    if not rank.scores:
        return ["There are no scores yet.", *unfinished(result)]
    return [
        quality(result, rank),
        *(differing(result, rank, test) for test in TESTS if any(p_values(rank, test))),
        *price(result, rank),
        *worth(result, rank, main_cost(result)),
        *unfinished(result),
    ]


def unfinished(result: ComparisonResult) -> Iterator[str]:
    """Which runs are missing."""
    if result.missing:
        runs = counted(len(result.missing), "run")
        has = "has" if len(result.missing) == 1 else "have"
        yield f"The comparison is not complete: {runs} {has} not ended."


def quality(result: ComparisonResult, rank: Ranking) -> str:
    """Which system is the best, and whether it differs from the baseline."""
    where = f"{rank.metric} on {rank.test_set}"
    best = rank.scores[rank.best]
    top, shown = described(best), fixed(best.mean)
    if len(rank.scores) == 1:
        return f"{rank.best} reaches a {where} of {top}. No other system has a score."
    equal = [name for name, score in rank.scores.items() if fixed(score.mean) == shown]
    if len(equal) > 1:
        return f"{listed(equal)} share the best {where}: {shown}."
    if rank.best == result.baseline:
        second = list(rank.scores.values())[1]
        return (
            f"The baseline, {rank.best}, has the best {where}: {top}. "
            f"{second.system} comes next, with {fixed(second.mean)}."
        )
    sentence = f"{rank.best} has the best {where}: {top}."
    found = rank.differences.get(rank.best)
    if found is None:
        return sentence
    return f"{sentence} {lead(result, found)}"


def described(score: ScoreSummary) -> str:
    """A score with its spread."""
    if score.deviation is None:
        return f"{fixed(score.mean)} (one seed)"
    seeds = counted(len(score.values), "seed")
    return (
        f"{fixed(score.mean)} ± {fixed(score.deviation)} "
        f"(mean and standard deviation over {seeds})"
    )


def lead(result: ComparisonResult, found: Difference) -> str:
    """How the best system differs from the baseline."""
    low, high = signed(found.sentence_low), signed(found.sentence_high)
    sentence = (
        f"It differs from the baseline, {result.baseline}, by "
        f"{signed(found.difference)} ({100 * result.confidence:g} % interval over "
        f"sentences {low} to {high})"
    )
    tested = {test: getattr(found, f"{test}_holm") for test in TESTS}
    yes = [TESTS[test] for test, p in tested.items() if p is not None and p < LEVEL]
    no = [TESTS[test] for test, p in tested.items() if p is not None and p >= LEVEL]
    if not yes and not no:
        return f"{sentence}; this was not tested for significance."
    if not no:
        return f"{sentence}, which is significant by the {' and the '.join(yes)}."
    if not yes:
        return f"{sentence}, which is not significant by the {' or the '.join(no)}."
    return f"{sentence}, which is significant by the {yes[0]} but not by the {no[0]}."


def p_values(rank: Ranking, test: str) -> dict[str, float]:
    """The corrected p-values of a test by system, where it could be made."""
    found = {
        name: getattr(difference, f"{test}_holm")
        for name, difference in rank.differences.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def differing(result: ComparisonResult, rank: Ranking, test: str) -> str:
    """Which systems differ from the baseline by a test."""
    tested = p_values(rank, test)
    rule = f"p < {LEVEL:g}"
    if len(tested) > 1:
        comparisons = counted(len(tested), "comparison")
        rule += f" after Holm’s correction for {comparisons}"
    found = [name for name, value in tested.items() if value < LEVEL]
    if not found:
        smallest = "the p-value" if len(tested) == 1 else "the smallest p-value"
        return (
            f"By the {TESTS[test]}, no system differs significantly from "
            f"{result.baseline} ({rule}; {smallest} is "
            f"{probability(min(tested.values()))})."
        )
    systems = counted(len(found), "system")
    differ = "differs" if len(found) == 1 else "differ"
    return (
        f"By the {TESTS[test]}, {systems} {differ} significantly from "
        f"{result.baseline} ({rule}): {'; '.join(directions(rank, found))}."
    )


def directions(rank: Ranking, names: Sequence[str]) -> Iterator[str]:
    """Which of the systems are better than the baseline, and which worse."""
    for word, sign in (("better", 1), ("worse", -1)):
        group = [
            f"{name} ({signed(rank.differences[name].difference)})"
            for name in rank.scores
            if name in names
            and sign * rank.sign * rank.differences[name].difference > 0
        ]
        if group:
            yield f"{listed(group)} {'is' if len(group) == 1 else 'are'} {word}"


def price(result: ComparisonResult, rank: Ranking) -> Iterator[str]:
    """The costs of the best system beside those of the baseline."""
    if rank.best == result.baseline:
        return
    parts: list[str] = []
    for name in SPOKEN:
        costs = cost_values(result, name)
        value, base = costs.get(rank.best), costs.get(result.baseline)
        if value is not None and base:
            word, unit, _, digits, _ = COSTS[name]
            parts.append(
                f"{f'its {word}' if parts else f'The {word} of {rank.best} is'} "
                f"{relation(value, base)} that of {result.baseline} "
                f"({fixed(value, digits)} against {fixed(base, digits)} {unit})"
            )
    if parts:
        yield f"{listed(parts)}."


def worth(result: ComparisonResult, rank: Ranking, cost: str) -> Iterator[str]:
    """The systems that no other beats in both quality and cost."""
    names, word = front(result, rank, cost), COSTS[cost].name
    if len(rank.scores) < 2 or not names:
        return
    if len(names) == 1:
        yield f"No other system is better than {names[0]} in {rank.metric} or {word}."
    else:
        yield (
            f"On the front of {rank.metric} and {word} are {listed(names)}: every "
            "other system is matched or beaten in both by one of them."
            if len(names) < len(rank.scores)
            else f"No system is beaten in both {rank.metric} and {word} by another."
        )


def front(result: ComparisonResult, rank: Ranking, cost: str) -> list[str]:
    """The systems that none equals in both and beats in one, the cheapest first."""
    sign = -1 if COSTS[cost].more_is_better else 1
    points = {
        name: (sign * value, -rank.sign * rank.scores[name].mean)
        for name, value in cost_values(result, cost).items()
        if name in rank.scores
    }
    chosen = [
        name
        for name, point in points.items()
        if not any(
            other != point and other[0] <= point[0] and other[1] <= point[1]
            for other in points.values()
        )
    ]
    return sorted(chosen, key=lambda name: points[name])
