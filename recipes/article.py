"""Tables and figures for an article, from the results of `kav compare`.

    python recipes/article.py runs/comparison/results.json article

writes two files for each of the five papers with systems in the comparison:
`PAPER.tex`, a table for `\\usepackage{booktabs}`, and `PAPER.pdf`, a figure of the
difference to the baseline, with its interval, at each point of the training
(`scores.points`) or only at its end. Both also show the difference that the paper
reports in its own setting (in the figure, a triangle), on the development set if it has
no other. Include them with `\\input` and `\\includegraphics`.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import keras_attnvariants as kav
from keras_attnvariants.experiments import ComparisonResult

PAPERS = {
    "you2020": "You et al. (2020)",
    "rosendahl2021": "Rosendahl et al. (2021)",
    "nguyen2018": "Nguyen and Joty (2018)",
    "cs287": "Chen, Ling and Rivera (2019)",
    "loem2022": "Loem et al. (2022)",
}
# Names of our own presets by those of the papers.
OWN_NAMES = {
    "baseline": "base",
    "self-attention": "base",
    "homogeneous-conv-kv-44": "homogeneous-conv-kv",
    "homogeneous-query-k-44": "homogeneous-query-k",
    "seq2seq": "lstm-no-attention",
    "seq2seq-attn": "lstm",
    "lowest-3-ngram": "lowest-2-ngram",
}
# The Transformer that CS287 compares its recurrent models with.
CS287_BASE = "megatron"
WIDTH, HEIGHT = 3.4, 2.4  # inches; a column of an article


def variant(preset: str) -> str:
    """The variant of a preset, by the name that our own presets use."""
    name = preset.split("/")[1]
    return OWN_NAMES.get(name, name)


def reported(paper: str) -> dict[str, float]:
    """BLEU differences from the paper's baseline, by variant, in its first setting.

    They are on the test set, or on the development set if the paper has no other.
    Variants without either are `nan`.
    """
    presets = [p for p in kav.presets.list() if p.name.startswith(f"{paper}/")]
    corpus = next(p.name.split("/")[2] for p in presets if p.published.bleu)
    found = {variant(p.name): float("nan") for p in presets}
    for part in ("dev_bleu", "bleu"):
        scores = {
            variant(p.name): next(iter(getattr(p.published, part).values()))
            for p in reversed(presets)
            if getattr(p.published, part) and p.name.endswith(f"/{corpus}")
        }
        if baseline := scores.get("base", scores.get(CS287_BASE)):
            differences = {name: score - baseline for name, score in scores.items()}
            found |= {"base": 0.0} | differences
    return found


def systems_of(result: ComparisonResult, paper: str) -> dict[str, float]:
    """Systems that differ from the baseline, and the differences a paper reports.

    Systems without a finished run are left out, and papers of the base model alone.
    """
    differences, metric = reported(paper), result.metrics[0]
    variants = {system.name: variant(system.preset) for system in result.systems}
    if (differences.keys() - {"base"}).isdisjoint(variants.values()):
        return {}
    own = variants[result.baseline]
    return {
        name: differences[found] - differences.get(own, math.nan)
        for name, found in variants.items()
        if found != own and found in differences
        if result.difference(name, result.test_sets[0].name, metric)
    }


def number(value: float | None, form: str = ".2f") -> str:
    """A number in math mode, or a dash for none."""
    return "--" if value is None or math.isnan(value) else f"${value:{form}}$"


def p_value(value: float | None) -> str:
    """A p-value in math mode."""
    return "$< 0.001$" if value is not None and value < 0.001 else number(value, ".3f")


def escaped(text: str) -> str:
    """A text with the special characters of LaTeX escaped.

    >>> print(escaped("hc_sa & 100 %"))
    hc\\_sa \\& 100 \\%
    """
    return "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text)


def row(result: ComparisonResult, system: str, paper: float | None) -> str:
    """A row of the table."""
    metric = result.metrics[0]
    cells = [escaped(system), number(result.system(system).parameters / 1e6)]
    for test in result.test_sets:
        score = result.score(system, test.name, metric)
        found = result.difference(system, test.name, metric)
        deviation = score and score.deviation
        spread = "" if deviation is None else f" \\pm {deviation:.2f}"
        cells.append("--" if score is None else f"${score.mean:.2f}{spread}$")
        low, high = found.interval[:2] if found else (None, None)
        interval = f" [{number(low, '+.2f')}, {number(high, '+.2f')}]" if found else ""
        cells += [number(found and found.difference, "+.2f") + interval]
        cells += [p_value(found and found.dunnett)]
    return " & ".join([*cells, number(paper, "+.1f")]) + r" \\"


def table(result: ComparisonResult, paper: str, systems: dict[str, float]) -> str:
    """The table of a paper: scores, differences with intervals, p-values."""
    metric, tests = result.metrics[0], result.test_sets
    over = {d.interval[2] for d in result.differences if d.metric == metric}
    groups = " & ".join(rf"\multicolumn{{3}}{{c}}{{{escaped(t.name)}}}" for t in tests)
    starts = range(3, 3 + 3 * len(tests), 3)
    rules = "".join(rf"\cmidrule(lr){{{start}-{start + 2}}}" for start in starts)
    heads = " & ".join([rf"{metric} & difference & $p$"] * len(tests))
    share, seeds = 100 * result.confidence, ", ".join(map(str, result.seeds))
    title = " ".join(result.title.split())
    lines = [
        f"% {escaped(title)}; {escaped(result.budget)} each, seeds {seeds}.",
        f"% Differences to {escaped(result.baseline)} with {share:.0f} % intervals "
        f"over {', '.join(sorted(over))};",
        "% p by Dunnett's test over seeds, of all systems together.",
        rf"\begin{{tabular}}{{lr{'rlr' * len(tests)}r}}",
        r"\toprule",
        rf" & & {groups} & {escaped(PAPERS[paper])} \\",
        rules,
        rf"system & parameters ($10^6$) & {heads} & difference \\",
        r"\midrule",
        row(result, result.baseline, None),
        *(row(result, name, value) for name, value in systems.items()),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join([*lines, ""])


def figure(result: ComparisonResult, systems: dict[str, float]) -> Figure:
    """Differences to the baseline on the first test set, over the budget if known."""
    drawn = Figure((WIDTH, HEIGHT), layout="constrained")
    axes = drawn.subplots()
    axes.axhline(0, color="0.6", linewidth=0.8)
    test = result.test_sets[0].name
    points = [point for point in result.points if point.test_set == test]
    for place, (name, paper) in enumerate(systems.items()):
        color = f"C{place}"
        if points:
            found = [
                (100 * point.share, difference)
                for point in points
                for difference in point.differences
                if difference.system == name
            ]
            shares = [share for share, _ in found]
            lows, highs = ([d.interval[i] for _, d in found] for i in (0, 1))
            axes.fill_between(shares, lows, highs, color=color, alpha=0.15, linewidth=0)
            axes.plot(shares, [d.difference for _, d in found], color=color, label=name)
            axes.plot([103], [paper], marker="<", color=color, clip_on=False)
        elif found := result.difference(name, test, result.metrics[0]):
            low, high = found.interval[:2]
            reach = [[found.difference - low], [high - found.difference]]
            axes.errorbar([place], [found.difference], reach, fmt="o", color=color)
            axes.plot([place + 0.2], [paper], marker="<", color=color)
    if points:
        axes.set_xlabel("share of the updates (%)")
        axes.legend(fontsize=7, frameon=False)
    else:
        axes.set_xticks(range(len(systems)), list(systems), rotation=20, ha="right")
    axes.set_ylabel(f"{result.metrics[0]} minus that of {result.baseline}")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes a table and a figure for each paper."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="results.json of a comparison")
    parser.add_argument("output", type=Path, help="folder for .tex and .pdf files")
    options = parser.parse_args(arguments)
    result = ComparisonResult.read(options.results)
    options.output.mkdir(parents=True, exist_ok=True)
    style = {"pdf.fonttype": 42, "font.size": 8, "lines.markersize": 4}
    for paper in PAPERS:
        if systems := systems_of(result, paper):
            text = table(result, paper, systems)
            (options.output / f"{paper}.tex").write_text(text, "utf-8")
            with mpl.rc_context(style):
                figure(result, systems).savefig(options.output / f"{paper}.pdf")
            print(f"{PAPERS[paper]}: {', '.join(systems)}")


if __name__ == "__main__":
    main()
