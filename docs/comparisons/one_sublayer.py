"""Presets that are base with one attention sub-layer hard-coded, as it is in hc-all.

`kav/cross-1/multi30k` has hard-coded cross-attention in its lowest layer. They are for
one-sublayer.toml. `python docs/comparisons/one_sublayer.py FOLDER...` reads two or more
folders of that comparison, each of another trained base, and prints the differences
from base: means and Student's 95 % intervals over these models.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from keras_attnvariants import presets
from keras_attnvariants.experiments import ComparisonResult

PLACES = ("encoder", "decoder", "cross")
BASE, HARD_CODED = (presets.get(f"kav/{name}/multi30k") for name in ("base", "hc-all"))


def architecture(hard_coded: set[tuple[str, int]], **options: Any) -> dict[str, Any]:
    """The architecture of base with some layers of hc-all.

    Args:
        hard_coded: places and numbers of these layers, from 1 for the lowest.
        **options: those of hc-all.
    """
    fixed = HARD_CODED.architecture(**options)
    learned = BASE.architecture(**{name: options[name] for name in BASE.options})
    for place in PLACES:
        key = f"{place}_attention"
        fixed[key] = [
            (fixed if (place, number) in hard_coded else learned)[key]
            for number in range(1, options["num_layers"] + 1)
        ]
    return fixed


def register(name: str, *hard_coded: tuple[str, int]) -> None:
    """Registers a preset with these layers hard-coded."""
    presets.register(
        replace(
            HARD_CODED,
            name=f"kav/{name}/multi30k",
            architecture=partial(architecture, set(hard_coded)),
            notes="Base with hard-coded attention in some layers.",
        )
    )


for _place in PLACES:
    for _number in range(1, BASE.options["num_layers"] + 1):
        register(f"{_place}-{_number}", (_place, _number))
# The six whose validation loss rises least.
PASSED = [("encoder", 1), ("encoder", 2), ("encoder", 3), ("encoder", 4)]
PASSED += [("decoder", 1), ("decoder", 4)]
register("passed", *PASSED)


def measures(result: ComparisonResult) -> dict[str, dict[str, float]]:
    """The values of each system, by measure."""
    found = {
        "validation loss": {r.system: r.validation_loss or np.nan for r in result.runs}
    }
    for score in result.scores:
        name = f"{score.metric}, {score.test_set}"
        found.setdefault(name, {})[score.system] = score.mean
    return found


def main() -> None:
    """Prints a table of differences from base, in Markdown."""
    results = [
        measures(ComparisonResult.read(Path(folder) / "results.json"))
        for folder in sys.argv[1:]
    ]
    for measure, values in results[0].items():
        print(f"\n| {measure} | difference | each model |\n|---|---|---|")
        for system in (name for name in values if name != "base"):
            each = [r[measure][system] - r[measure]["base"] for r in results]
            half = stats.t.ppf(0.975, len(each) - 1) * stats.sem(each)
            low, high = np.mean(each) - half, np.mean(each) + half
            mean, shown = np.mean(each), ", ".join(f"{x:+.3f}" for x in each)
            print(f"| {system} | {mean:+.3f} ({low:+.3f} to {high:+.3f}) | {shown} |")


if __name__ == "__main__":
    main()
