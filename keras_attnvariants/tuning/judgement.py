"""The judgement on a proposal: are its hybrids as good as the baseline?"""

from dataclasses import dataclass
from dataclasses import field
from typing import NamedTuple

from keras_attnvariants.analysis import Table
from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.evaluation.significance import mean_interval
from keras_attnvariants.tuning.hybrids import LEARNED
from keras_attnvariants.tuning.proposal import DIMENSION
from keras_attnvariants.tuning.results import SearchResult
from keras_attnvariants.utils.checks import check_positive

# Share of the baseline's score by which a hybrid may be worse.
TOLERANCE = 0.01


class HybridScore(NamedTuple):
    """A hybrid beside the baseline.

    Attributes:
        hybrid: its name; `"learned"` is the baseline.
        score: value of the objective, mean over the seeds.
        parameters: number of parameters of the model.
        saved: how many parameters fewer it has than the baseline.
        worse: share of the baseline's score by which it is worse, mean over the seeds;
            negative if it is better.
        low, high: 95 % interval of `worse` over the seeds; `None` for one seed.
        verdict: `"confirmed"`, `"refuted"` or `"open"`; `"baseline"` for itself.
    """

    hybrid: str
    score: float
    parameters: int
    saved: int
    worse: float
    low: float | None
    high: float | None
    verdict: str

    def describe(self, metric: str) -> str:
        """The score and its interval in words."""
        seeds = "one seed, so without an interval"
        if self.low is not None:
            seeds = f"95 % interval {self.low:+.2%} to {self.high:+.2%}"
        return (
            f"`{self.hybrid}`, {metric} {self.score:.4g}, {self.worse:+.2%} ({seeds})"
        )


@dataclass(frozen=True)
class Judgement(Table):
    """The trained hybrids of a proposal.

    Attributes:
        title, rows: as in `kav.analysis.Table`; a row is a hybrid or the baseline.
            Hybrids with fewer parameters come first.
        metric: name of the score.
        budget: the budget of each, in words.
        tolerance: share of the baseline's score by which a hybrid may be worse.
    """

    metric: str = field(kw_only=True)
    budget: str = field(kw_only=True)
    tolerance: float = field(kw_only=True)

    @property
    def sentence(self) -> str:
        """The judgement in one sentence: confirmed, refuted or open."""
        *hybrids, baseline = self.rows
        bound = f"at most {self.tolerance:.0%} worse than the baseline"
        found = min(hybrids, key=lambda row: row.worse)
        start = f"Neither confirmed nor refuted that a hybrid is {bound}: more seeds"
        if all(row.verdict == "refuted" for row in hybrids):
            start = f"Refuted: no hybrid is {bound}"
        start = f"{start}; the nearest is "
        if confirmed := [row for row in hybrids if row.verdict == "confirmed"]:
            found = confirmed[0]
            saved = f"{found.saved:,} of {baseline.parameters:,}"
            saved = f"saves {saved if found.saved > 0 else 'no'} parameters"
            start = f"Confirmed: a hybrid is {bound} and {saved}: "
        end = f"the baseline has {baseline.score:.4g}, after {self.budget} each."
        return f"{start}{found.describe(self.metric)}; {end}"


def judge(result: SearchResult, tolerance: float = TOLERANCE) -> Judgement:
    """Compare hybrids with their baseline.

    A hybrid is confirmed if it is worse by at most the tolerance. With several seeds,
    the end of the interval counts, from Student's distribution of the differences
    between runs with the same seed.

    Args:
        result: result of a search in the space of a `Proposal`.
        tolerance: share of the baseline's score by which a hybrid may be worse.

    Raises:
        ValueError: the baseline or all hybrids are missing, because their trials
            failed or have not ended; or the baseline's score is 0.
    """
    check_positive("tolerance", tolerance)
    found = {record.values.get(DIMENSION): record for record in result.records}
    baseline = found.pop(LEARNED, None)
    if baseline is None or not found:
        raise ValueError(
            "A verdict needs the baseline and a hybrid whose trials have ended. "
            f"Received: {sorted(map(str, found))} and failures {result.failed}"
        )
    metric = f"val_{result.objective}"
    if not baseline.score:
        raise ValueError(
            f"The {metric} of the baseline must not be 0: verdicts compare differences "
            f"with a share of it. Received: {baseline.score:g}"
        )
    scale = (-1 if higher_is_better(metric) else 1) / abs(baseline.score)
    records = sorted(found.items(), key=lambda item: item[1].parameters)
    rows = []
    for name, record in (*records, (LEARNED, baseline)):
        pairs = zip(record.scores, baseline.scores, strict=True)
        worse = [scale * (own - other) for own, other in pairs]
        mean, _, low, high = mean_interval(worse)
        verdict = "open"
        if record is baseline:
            low, high, verdict = None, None, "baseline"
        elif (mean if high is None else high) <= tolerance:
            verdict = "confirmed"
        elif (mean if low is None else low) > tolerance:
            verdict = "refuted"
        size, saved = record.parameters, baseline.parameters - record.parameters
        row = HybridScore(
            str(name), record.score, size, saved, mean, low, high, verdict
        )
        rows.append(row)
    return Judgement(
        f"Hybrids and baseline by {metric}, after {result.budget} each",
        tuple(rows),
        metric=metric,
        budget=result.budget,
        tolerance=tolerance,
    )
