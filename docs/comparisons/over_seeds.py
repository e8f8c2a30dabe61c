"""Means over seeds of what `kav analyse` wrote for several runs, as a Markdown table.

python docs/comparisons/over_seeds.py locality base='analyses/base-*.locality.csv' \
    context='analyses/context-*.locality.csv'

Each system is a name and a pattern of files, one file for each seed. The intervals
(95 %) of means are Student's. With --differences, other systems than the first are
differences from it, with the intervals of Dunnett's test. Only SciPy is needed, not
TensorFlow.
"""

import argparse
import csv
import glob
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from scipy import stats

Row = dict[str, str]


def locality(rows: list[Row]) -> Iterator[tuple[str, float]]:
    """The mean distance of the heads of a layer."""
    for row in rows:
        yield f"{row['place']} {row['layer']}", float(row["distance"])


def neighbours(rows: list[Row]) -> Iterator[tuple[str, float]]:
    """The weight of a token and its two neighbours, in percent."""
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        if abs(int(row["distance"])) < 2:
            sums[f"{row['place']} {row['layer']}"] += 100 * float(row["weight"])
    yield from sums.items()


def off_diagonality(rows: list[Row]) -> Iterator[tuple[str, float]]:
    """The share of off-diagonal tokens over all layers, in percent."""
    for row in rows:
        if not row["layer"]:
            yield row["place"], 100 * float(row["share"])


def contrastive(rows: list[Row]) -> Iterator[tuple[str, float]]:
    """Right pairs in percent; pairs from human and machine translations count alike."""
    for row in rows:
        phenomenon = row["category"].rpartition(".")[0]
        yield f"{phenomenon}, {row['score']}", float(row["accuracy"])


ANALYSES = {
    "locality": locality,
    "neighbours": neighbours,
    "off-diagonality": off_diagonality,
    "contrastive": contrastive,
}


def read(analysis: str, pattern: str) -> dict[str, list[float]]:
    """The values of the seeds, by name; values of one name in one file are averaged."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise SystemExit(f"No file matches {pattern!r}.")
    values: dict[str, list[float]] = defaultdict(list)
    for path in paths:
        found: dict[str, list[float]] = defaultdict(list)
        with open(path, encoding="utf-8", newline="") as file:
            for name, value in ANALYSES[analysis](list(csv.DictReader(file))):
                found[name].append(value)
        for name, parts in found.items():
            values[name].append(sum(parts) / len(parts))
    return values


def mean(values: list[float], form: str = ".2f") -> str:
    """A mean with Student's interval, which one seed does not have."""
    center, seeds = np.mean(values), len(values)
    if seeds == 1:
        return f"{center:{form}}"
    interval = stats.t.interval(0.95, seeds - 1, center, stats.sem(values))
    return with_interval(center, *interval, form)


def differences(systems: list[list[float]], first: list[float]) -> Iterator[str]:
    """The differences of means from that of the first system."""
    test = stats.dunnett(*systems, control=first, rng=np.random.default_rng(1))
    for values, low, high in zip(systems, *test.confidence_interval(), strict=True):
        yield with_interval(np.mean(values) - np.mean(first), low, high, "+.2f")


def with_interval(value: float, low: float, high: float, form: str) -> str:
    """A value with its interval."""
    return f"{value:{form}} ({low:{form}} to {high:{form}})"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("analysis", choices=ANALYSES)
    parser.add_argument("systems", nargs="+", metavar="system=pattern")
    parser.add_argument("--differences", action="store_true")
    options = parser.parse_args()
    values = {}
    for system in options.systems:
        name, _, pattern = system.partition("=")
        values[name] = read(options.analysis, pattern)
    print("|  |", " | ".join(values), "|")
    print("|---|" + "---|" * len(values))
    for name in next(iter(values.values())):
        first, *others = (found[name] for found in values.values())
        rest = differences(others, first) if options.differences else map(mean, others)
        print(f"| {name} |", " | ".join([mean(first), *rest]), "|")


if __name__ == "__main__":
    main()
