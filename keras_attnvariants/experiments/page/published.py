"""Published figures, each beside ours of the same kind or beside none."""

from keras_attnvariants.experiments.page.english import fixed
from keras_attnvariants.experiments.page.english import number
from keras_attnvariants.experiments.result_parts import Measure
from keras_attnvariants.experiments.results import ComparisonResult

# By field of `PublishedFigures`; papers print at least so many digits.
FIGURES = {
    "bleu": Measure("BLEU", digits=1),
    "ter": Measure("TER", digits=1),
    "dev_bleu": Measure("development BLEU", digits=1),
    "dev_ter": Measure("development TER", digits=1),
    "rouge": Measure("F1", digits=1),
    "parameters": Measure("parameters", "M", 1e-6),
    "relative_training_time": Measure("training time of an update", "×", digits=1),
    "sentences_per_second": Measure("decoding speed", "sentences/s", digits=1),
    "max_batch_tokens": Measure("largest batch", "tokens"),
    "loss": Measure("loss", digits=1),
    "perplexity": Measure("perplexity", digits=1),
}


def printed(value: float, least: int) -> str:
    """A number with as many digits as it needs, but not fewer than papers print.

    >>> printed(30.0, 1), printed(26.71, 1), printed(116.0, 0)
    ('30.0', '26.71', '116')
    """
    return fixed(value, max(least, len(number(value).partition(".")[2])))


def our_figure(result: ComparisonResult, system: str, figure: str) -> float | None:
    """Our figure of the same kind, in the same direction; `None` if there is none.

    Scores are those of the first test set.
    """
    costs = result.costs(system)
    direction = f"{result.source_language}-{result.target_language}"
    if figure in (f"bleu {direction}", f"ter {direction}"):
        metric = figure.partition(" ")[0].upper()
        score = result.score(system, result.test_sets[0].name, metric)
        return score.mean if score else None
    if figure == "relative_training_time":
        own, base = map(seconds_of_an_update, (costs, result.costs(result.baseline)))
        return own / base if own and base else None
    # The others have the same name here and there.
    return costs.get(figure)


def our_difference(result: ComparisonResult, system: str, figure: str) -> float | None:
    """Our figure minus that of the baseline; `None` if there is none."""
    own, base = (our_figure(result, name, figure) for name in (system, result.baseline))
    if own is None or base is None or system == result.baseline:
        return None
    return own - base


def seconds_of_an_update(costs: dict[str, float | None]) -> float | None:
    """Training time by number of updates; `None` if it is not known."""
    seconds, updates = costs["seconds"], costs["updates"]
    return seconds / updates if seconds and updates else None
