"""Time and memory of the analyses by the number of sentences."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from itertools import islice
from itertools import repeat
from pathlib import Path
from typing import Annotated
from typing import Any
from typing import NamedTuple
from typing import get_args

# Before TensorFlow is imported: errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import typer
from measuring import Report
from measuring import TableRow
from peak import forget_peak
from peak import in_own_process
from peak import resident

from keras_attnvariants.analysis.contrastive import SUBJECT_VERB
from keras_attnvariants.cli.analyse import CONTRASTIVE
from keras_attnvariants.cli.analyse import Analysis
from keras_attnvariants.cli.analyse import DataOptions
from keras_attnvariants.cli.analyse import Read
from keras_attnvariants.cli.analyse import tables

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# typer takes a list of an enumeration, not of literals.
Name = StrEnum("Name", {name: name for name in get_args(Analysis)})

MB = 10**6
# Sentences before the measured ones: enough to trace most shapes.
WARM_UP = 100

TEXT = (
    "Each analysis in a process of its own, as `kav analyse` makes it, with one model. "
    "Time is processor time; memory is the most that the analysis adds to the resident "
    "memory of the process after the first {warm_up} sentences. A corpus with fewer "
    "sentences is repeated. Growth is that of the time, divided by that of the number "
    "of sentences: at most 1, as long as the time is not more than linear."
)


class Cost(NamedTuple):
    """CPU seconds, and the largest number of bytes added."""

    seconds: float
    memory: int


def first(count: int, read: Read) -> Iterator[Any]:
    """The first `count` items of data, repeated if there are fewer.

    Raises:
        ValueError: there are none.
    """
    if next(iter(read()), None) is None:
        raise ValueError("There are no sentences for this analysis.")
    again = chain.from_iterable(read() for _ in repeat(None))
    return islice(again, count)


def needed(analysis: Analysis, read: Read) -> Read:
    """A reader of the items that an analysis does not skip."""
    if analysis != "agreement":
        return read
    return lambda: (p for p in read() if p.category.startswith(SUBJECT_VERB))


def measure(analysis: Analysis, run: Path, data: DataOptions, sentences: int) -> Cost:
    """Measures the cost of an analysis of this many sentences."""
    from keras_attnvariants.cli.models import load
    from keras_attnvariants.cli.models import same_task

    systems = {run.name: load(run)}
    read = needed(analysis, data.reader(analysis, same_task({run.name: run})))

    def analyse(count: int) -> None:
        for _, table in tables(analysis, systems, lambda: first(count, read)):
            table.to_csv(os.devnull)

    analyse(WARM_UP)
    before, start = forget_peak(), time.process_time()
    analyse(sentences)
    return Cost(time.process_time() - start, resident("VmHWM") - before)


def rows_of(analysis: Analysis, costs: dict[int, Cost]) -> list[TableRow]:
    """A row for each number of sentences, the smallest first."""
    smallest = min(costs)
    return [
        {
            "analysis": analysis,
            "sentences": sentences,
            "CPU, s": cost.seconds,
            "memory, MB": cost.memory / MB,
            "growth": cost.seconds / costs[smallest].seconds / (sentences / smallest),
            "bar": 1.0 if sentences > smallest else None,
        }
        for sentences, cost in sorted(costs.items())
    ]


@app.command()
def main(
    run: Annotated[Path, typer.Argument(help="Folder of a run or a model.")],
    data: Annotated[str, typer.Option(help="A corpus, as for `kav train`.")],
    source: Annotated[str, typer.Option(help="Language to translate from.")],
    target: Annotated[str, typer.Option(help="Language to translate into.")],
    split: Annotated[str, typer.Option(help="Part of the corpus.")] = "test",
    contrastive: Annotated[
        str | None, typer.Option(help="Contrastive pairs, as for `kav analyse`.")
    ] = None,
    alignments: Annotated[
        str | None, typer.Option(help="A corpus with a test.align of its own.")
    ] = None,
    analysis: Annotated[
        list[Name] | None,
        typer.Option(help="Name of an analysis; repeatable (default: all)."),
    ] = None,
    sentences: Annotated[
        list[int], typer.Option(min=1, help="Number of sentences; repeatable.")
    ] = [1_000, 10_000],  # noqa: B006
    output: Annotated[
        Path | None, typer.Option(help="File for the numbers, as JSON.")
    ] = None,
) -> None:
    """Time and memory of the analyses of one model.

    Without --contrastive and --alignments, the analyses that need them are left out
    unless asked for. Heat maps, which always show one sentence, are refused.
    """
    corpus = DataOptions(data=data, source=source, target=target, split=split)
    sources: dict[Analysis, DataOptions] = dict.fromkeys(get_args(Analysis), corpus)
    del sources["heat-maps"]
    for name in CONTRASTIVE:
        sources[name] = DataOptions(data=contrastive or "")
    sources["alignment-errors"] = replace(corpus, data=alignments or "", split="test")
    ready = [name for name, where in sources.items() if where.data]
    for name in analysis or ():
        if name not in ready:
            option = "--contrastive" if name in CONTRASTIVE else "--alignments"
            needs = f"needs {option}" if name in sources else "is of one sentence"
            raise typer.BadParameter(f"{name} {needs}", param_hint="--analysis")
    rows = []
    for name in analysis or ready:
        where = sources[name]
        found = {n: in_own_process(measure, name, run, where, n) for n in sentences}
        rows += rows_of(name, found)
    report = Report(
        "Analyses",
        TEXT.format(warm_up=WARM_UP),
        f"{run.name}, {data}",
        rows,
        ("growth",),
        at_most=True,
    )
    report.show()
    if output is not None:
        report.write(output)


if __name__ == "__main__":
    app()
