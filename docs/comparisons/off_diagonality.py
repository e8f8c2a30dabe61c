"""BLEU by off-diagonality of the recorded runs of a comparison, as a Markdown table.

kav compare docs/comparisons/multi30k-12m.toml --folder runs/12m --score-only \
    --records docs/comparisons/records/multi30k-12m
python docs/comparisons/off_diagonality.py runs/base/seed-1 --folder runs/12m \
    --data multi30k --split test2016 --systems base context

The first argument is the run whose self-attention sorts the sentences into fifths.
The first system is the baseline. The others have differences from it, paired over
seeds, and how these change per fifth (least squares), with Student's intervals (95 %).
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from over_seeds import mean

import keras_attnvariants as kav


def recorded(path: Path) -> Callable[[list[str]], list[str]]:
    """A function that returns the translations in a file, whatever the texts."""
    lines = path.read_text("utf-8").splitlines()
    return lambda texts: lines


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", required=True)
    parser.add_argument("--systems", nargs="+", required=True)
    options = parser.parse_args()
    model, tokenizer = kav.training.load_run(options.run)
    corpus = kav.data.load_corpus(options.data, "en", "de")
    pairs = list(kav.analysis.read_pairs(corpus, options.split))
    folder = options.folder / "translations" / options.split
    values: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for seed in range(1, 1 + len([*folder.glob(f"{options.systems[0]}-[0-9].txt")])):
        systems = {
            system: recorded(folder / f"{system}-{seed}.txt")
            for system in options.systems
        }
        table = kav.analysis.bleu_by_off_diagonality(model, tokenizer, systems, pairs)
        fifths: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in table.rows:
            value = row.bleu if row.difference is None else row.difference
            fifths[row.by, row.system].append(value)
        for key, scores in fifths.items():
            values[key].append(scores)
    for by in dict.fromkeys(by for by, _ in values):
        print(f"\n| {by} | 1 | 2 | 3 | 4 | 5 | change per fifth |")
        print("|---" * 7 + "|")
        for system in options.systems:
            seeds = np.array(values[by, system])
            slopes = np.polyfit(np.arange(5), seeds.T, 1)[0]
            cells = [mean([*x], "+.2f") for x in [*seeds.T, slopes]]
            if system == options.systems[0]:
                cells = [f"{x:.2f}" for x in seeds.mean(0)] + [""]
            print(f"| {system} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
