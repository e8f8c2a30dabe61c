"""Published figures, each beside ours of the same kind or beside none."""

from collections.abc import Iterator
from typing import NamedTuple

from keras_attnvariants.experiments.page.english import number
from keras_attnvariants.experiments.result_parts import Measure
from keras_attnvariants.experiments.results import ComparisonResult

# By field of `PublishedFigures`, with the fewest digits that papers print.
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


class Row(NamedTuple):
    """A published figure and ours; what there is not is `None`.

    Attributes:
        system: name of our system.
        preset: name of the preset whose figure it is.
        figure: what it is, such as `"BLEU en-de"`.
        unit: of all values.
        paper, paper_difference: its value, and minus that of the paper's baseline.
        ours, our_difference: the same of our system.
        digits: after the point, as the paper prints it.
    """

    system: str
    preset: str
    figure: str
    unit: str
    paper: float
    paper_difference: float | None
    ours: float | None
    our_difference: float | None
    digits: int


def published_rows(result: ComparisonResult) -> Iterator[Row]:
    """The published figures of all systems, in the units that are shown."""
    for system in result.systems:
        for figure, value in system.published.items():
            kind, _, key = figure.partition(" ")
            measure = FIGURES[kind]
            paper = measure.factor * value
            difference = system.published_differences.get(figure)
            ours = our_figure(result, system.name, figure)
            base = our_figure(result, result.baseline, figure)
            if ours is None or base is None or system.name == result.baseline:
                change = None
            else:
                change = measure.factor * (ours - base)
            yield Row(
                system.name,
                system.published_preset,
                f"{measure.name} {key}".rstrip(),
                measure.unit,
                paper,
                None if difference is None else measure.factor * difference,
                None if ours is None else measure.factor * ours,
                change,
                max(measure.digits, len(number(paper).partition(".")[2])),
            )


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


def seconds_of_an_update(costs: dict[str, float | None]) -> float | None:
    """Training time by number of updates; `None` if it is not known."""
    seconds, updates = costs["seconds"], costs["updates"]
    return seconds / updates if seconds and updates else None
