"""Results of trials, stored with their runs; the Pareto front of quality and cost."""

import contextlib
import dataclasses
import os
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.jupyter import JupyterMixin
from rich.table import Column
from rich.table import Table

from keras_attnvariants.data.tasks import higher_is_better
from keras_attnvariants.training.progress import read_log
from keras_attnvariants.training.run_models import LOG
from keras_attnvariants.tuning.dimensions import PLACES
from keras_attnvariants.tuning.dimensions import label
from keras_attnvariants.utils.checks import check_choice
from keras_attnvariants.utils.machine import from_proc
from keras_attnvariants.utils.records import read_record
from keras_attnvariants.utils.records import write_table

RECORD = "record.json"
# Why a trial failed, in its folder.
ERROR = "error.txt"
# The costs of a trial; -1 if higher is better.
COSTS = {"parameters": 1, "tokens_per_second": -1, "memory_mib": 1, "minutes": 1}
# Parts of an object's JSON label that people need not read.
JSON_PARTS = re.compile(
    r'"module": "[^"]*", |, "registered_name": "[^"]*"|"(class_name|config)": |["{}]'
)


@dataclass(frozen=True)
class TrialRecord:
    """One trial that has ended.

    Attributes:
        trial: its number in the search.
        values: the point of the space.
        scores: value of the objective for each seed, from the better model of the run.
        updates: number of updates of a run.
        parameters: parameters of the model.
        tokens_per_second: target tokens in training, median over the log.
        memory_mib: largest resident memory of the process during the trial. A process
            may still hold memory of earlier trials.
        minutes: duration of a run with its validations, mean over the seeds.
        best_seed: the seed of the best run.
    """

    trial: str
    values: dict[str, Any]
    scores: tuple[float, ...]
    updates: int
    parameters: int
    tokens_per_second: float
    memory_mib: float
    minutes: float
    best_seed: int

    @property
    def score(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.scores)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; 0 for one."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0

    @property
    def formatted_score(self) -> str:
        """The score, with its spread if there are several seeds."""
        spread = f" ± {self.spread:.2g}" if len(self.scores) > 1 else ""
        return f"{self.score:.4g}{spread}"

    def describe(self, metric: str) -> str:
        """One line with the score, named `metric`, and the cost."""
        return (
            f"Trial {self.trial}: {metric} {self.formatted_score}, "
            f"{self.parameters:,} parameters, {self.updates:,} updates, "
            f"{self.minutes:.1f} min"
        )

    def point(self, dimensions: Sequence[str]) -> str:
        """The values of some dimensions, with a line for each place of attention."""
        lines: dict[str, list[str]] = {place: [] for place in (*PLACES, "")}
        for name in filter(self.values.__contains__, dimensions):
            place = name.partition("/")[0]
            text = f"{short_name(name)} {JSON_PARTS.sub('', label(self.values[name]))}"
            lines[place if place in lines else ""].append(text.removeprefix("options "))
        return "\n".join(", ".join(texts) for texts in lines.values() if texts)

    def cost(self, name: str) -> float:
        """One of `COSTS`, with its sign set so that less is better."""
        return float(COSTS[name] * getattr(self, name))


@dataclass(frozen=True)
class SearchResult(JupyterMixin):
    """The finished trials of a search, best first.

    Attributes:
        folder: folder of the search.
        records: the trials.
        objective: `"loss"`, or the first metric of the task such as `"bleu"`.
        budget: the budget of each trial, in words.
        failed: numbers and errors of the trials that failed.
    """

    folder: Path
    records: tuple[TrialRecord, ...]
    objective: str
    budget: str
    failed: dict[str, str] = dataclasses.field(default_factory=dict)

    def best(self, **bounds: float) -> TrialRecord:
        """The best trial, optionally within bounds on its cost.

        Args:
            **bounds: largest `parameters`, `memory_mib` or `minutes`, and smallest
                `tokens_per_second`.

        Raises:
            ValueError: no trial is within the bounds.
        """
        for name in bounds:
            check_choice("bounds", name, COSTS)
        for record in self.records:
            if all(record.cost(name) <= COSTS[name] * bounds[name] for name in bounds):
                return record
        raise ValueError(f"No trial has ended within these bounds. Received: {bounds}")

    def front(self, cost: str = "parameters") -> tuple[TrialRecord, ...]:
        """The trials that no other beats at the same or a lower cost, best first.

        Args:
            cost: `"parameters"`, `"tokens_per_second"`, `"memory_mib"` or `"minutes"`.
        """
        check_choice("cost", cost, COSTS)
        found: list[TrialRecord] = []
        # From best to worst, each trial on the front is cheaper than all before.
        for record in self.records:
            if not found or record.cost(cost) < found[-1].cost(cost):
                found.append(record)
        return tuple(found)

    def run_folder(self, record: TrialRecord | None = None) -> Path:
        """The folder of the best run of a trial; by default, of the best trial."""
        chosen = record or self.best()
        return self.folder / f"trial_{chosen.trial}" / f"seed-{chosen.best_seed}"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all trials, one per line."""
        measured = ("updates", *COSTS, "best_seed")
        rows = [
            {"trial": r.trial, self.objective: r.score, "spread": r.spread}
            | {name: getattr(r, name) for name in measured}
            | r.values
            for r in self.records
        ]
        write_table(Path(path), rows)

    def __rich__(self) -> Group:
        front, varied = self.front(), dimensions_that_vary(self.records)
        title = f"{len(self.records)} trials of {self.budget} each"
        costs = Table(title=title, box=None)
        costs.caption = "* on the Pareto front of quality and number of parameters"
        metric = f"val_{self.objective}"
        for name in ("", "trial", metric, "parameters", "tokens/s", "MiB", "minutes"):
            costs.add_column(name, justify="right", no_wrap=True)
        # In a second table: beside the costs, they would not fit into a terminal.
        points = Table("trial", Column("values", overflow="fold"), box=None)
        for r in self.records:
            costs.add_row(
                "*" if r in front else "",
                r.trial,
                r.formatted_score,
                f"{r.parameters:,}",
                f"{r.tokens_per_second:,.0f}",
                f"{r.memory_mib:,.0f}",
                f"{r.minutes:.1f}",
            )
            points.add_row(r.trial, r.point(varied))
        return Group(costs, points)


def short_name(dimension: str) -> str:
    """The name of a dimension without the choice that it depends on."""
    place, *rest = dimension.split("/")
    if rest and rest[0].isdigit():
        place = f"{place} {rest.pop(0)}"
    return rest[-1] if rest else place


def dimensions_that_vary(records: Sequence[TrialRecord]) -> list[str]:
    """The dimensions in which the trials differ, sorted; for one trial, all."""
    return [
        name
        for name in sorted({name for record in records for name in record.values})
        if len(records) == 1 or len({repr(r.values.get(name)) for r in records}) > 1
    ]


def read_result(folder: Path, objective: str, budget: str) -> SearchResult:
    """The finished and the failed trials in the folder of a search."""
    paths = sorted(folder.glob(f"*/{RECORD}"))
    records = [read_record(path, TrialRecord) for path in paths]
    records.sort(key=attrgetter("score"), reverse=higher_is_better(objective))
    failed = {
        path.parent.name.removeprefix("trial_"): path.read_text("utf-8").strip()
        for path in sorted(folder.glob(f"trial_*/{ERROR}"))
    }
    return SearchResult(folder, tuple(records), objective, budget, failed)


def measure_runs(folders: Sequence[Path]) -> tuple[float, float]:
    """Target tokens per second and minutes of some runs, from their logs."""
    events = [read_log(folder / LOG) for folder in folders]
    name = "tokens_per_second"
    # The first line includes compilation.
    speeds = [event[name] for log in events for event in log[1:] if name in event]
    minutes = statistics.fmean(log[-1]["seconds"] for log in events) / 60
    return statistics.median(speeds or [0.0]), minutes


def reset_peak_memory() -> None:
    """Reset the peak memory, if the operating system allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """Peak memory in MiB since `reset_peak_memory`; 0 if it is not known."""
    kibibytes, *_ = from_proc("self/status", "VmHWM").split() or ["0"]
    return int(kibibytes) / 1024
