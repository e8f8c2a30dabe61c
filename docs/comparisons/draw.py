"""Redraws the pages of the comparisons on Multi30k after a change to the page.

`python docs/comparisons/draw.py` reads the results beside it, multi30k.json.xz and
multi30k-long.json.xz. The first was made from an earlier version of its page. It has
the figures in full, but scores of single seeds with two digits, curves and weights only
as exactly as that page drew them, and for each run the mean costs of its system. The
picture of differences in docs/pictures shows the second.
"""

import lzma
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from keras_attnvariants.experiments import ComparisonResult
from keras_attnvariants.experiments.page import write_page

FOLDER = Path(__file__).parent
PICTURE = FOLDER.parent / "pictures" / "multi30k_differences.png"
MARKERS = "o", "s", "^", "D"


def read(name: str) -> ComparisonResult:
    """The results of a comparison."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.json"
        path.write_bytes(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))
        return ComparisonResult.read(path)


def differences(result: ComparisonResult) -> Figure:
    """Differences from the baseline on the first test set, over the training."""
    test, metric = result.test_sets[0].name, result.metrics[0]
    points = [p for p in result.points if p.test_set == test]
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.5", linewidth=0.8)
    names = [s.name for s in result.systems if s.name != result.baseline]
    for place, (name, marker) in enumerate(zip(names, MARKERS, strict=False)):
        found = [
            next(d for d in p.differences if (d.system, d.metric) == (name, metric))
            for p in points
        ]
        # Side by side, so that the intervals do not overlap.
        x = [100 * p.share + 1.2 * (place - (len(names) - 1) / 2) for p in points]
        y = [d.difference for d in found]
        errors = [
            [d.difference - d.low for d in found],
            [d.high - d.difference for d in found],
        ]
        axes.errorbar(
            x,
            y,
            errors,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=name,
        )
    axes.set_xlabel("share of the updates, %")
    axes.set_ylabel(f"{metric} less that of {result.baseline}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=len(names), loc="upper right")
    return figure


def main() -> None:
    """Writes both pages, and the picture."""
    for name in ("multi30k", "multi30k-long"):
        write_page(read(name), FOLDER / f"{name}.html")
    differences(read("multi30k-long")).savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
