"""The results of a comparison as files: JSON, CSV, LaTeX and the page."""

from collections.abc import Iterator
from dataclasses import asdict
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from keras_attnvariants.experiments.checked_tables import path_name
from keras_attnvariants.experiments.results import COSTS
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.experiments.results import Difference
from keras_attnvariants.experiments.results import RunResult
from keras_attnvariants.utils.files import write_csv
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.machine import check_extra

RESULTS = "results.json"
PAGE = "report.html"
SYSTEMS, SCORES, DIFFERENCES = "systems.csv", "scores.csv", "differences.csv"
RUNS = "runs.csv"
ANALYSES = "analyses"
LATEX = "table.tex"
# Of the extra `compare`.
NEEDED = ("scipy", "jinja2", "vl_convert")
# Below it, a difference has an asterisk.
SIGNIFICANT = 0.05

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def write_all(result: ComparisonResult, folder: Path) -> None:
    """Writes everything into the folder of the comparison.

    Raises:
        OSError: a file cannot be written.
    """
    result.write(folder / RESULTS)
    for name, rows in tables(result).items():
        write_csv(folder / name, rows)
    for number, table in enumerate(result.analyses):
        if table.rows:
            of = table.system or "all"
            name = f"{number + 1:02}-{table.analysis}-{path_name(of)}.csv"
            (folder / ANALYSES).mkdir(exist_ok=True)
            write_csv(folder / ANALYSES / name, [table.columns, *table.rows])
    write_file(folder / LATEX, latex(result).encode())
    from keras_attnvariants.experiments.page import write_page

    write_page(result, folder / PAGE)


def check_packages() -> None:
    """Raises unless what tests and the page need is installed.

    Raises:
        ValueError: says how to install what is missing.
    """
    check_extra("A comparison", "compare", NEEDED)


def tables(result: ComparisonResult) -> dict[str, list[list[Any]]]:
    """The tables by names of their files, each with a line of headings."""
    figures = dict.fromkeys(f for s in result.systems for f in s.published)
    systems: list[list[Any]] = [
        ["system", "preset", "changes", *COSTS, "published_preset"]
    ]
    systems[0] += [f"published {figure}" for figure in figures]
    systems[0] += [f"published difference {figure}" for figure in figures]
    for system in result.systems:
        costs: list[Any] = list(result.costs(system.name).values())
        published = [system.published.get(figure) for figure in figures]
        published += [system.published_differences.get(figure) for figure in figures]
        row = [system.name, system.preset, changes(system.changes), *costs]
        systems.append([*row, system.published_preset, *published])
    scores: list[list[Any]] = [
        ["system", "test_set", "metric", "mean", "deviation", "low", "high"]
        + [f"seed {seed}" for seed in result.seeds]
        + ["signature"]
    ]
    for score in result.scores:
        values = dict(zip(score.seeds, score.values, strict=True))
        scores.append(
            [score.system, score.test_set, score.metric, score.mean, score.deviation]
            + [score.low, score.high]
            + [values.get(seed) for seed in result.seeds]
            + [score.signature]
        )
    names = list(Difference.__dataclass_fields__)
    columns = [field.name for field in fields(RunResult) if field.name != "curve"]
    runs = [[getattr(run, name) for name in columns] for run in result.runs]
    differences = [list(asdict(row).values()) for row in result.differences]
    return {
        SYSTEMS: systems,
        RUNS: [columns, *runs],
        SCORES: scores,
        DIFFERENCES: [names, *differences],
    }


def changes(values: dict[str, Any]) -> str:
    """Options and settings of a system in a line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def latex(result: ComparisonResult) -> str:
    """The main table, for a document with `\\usepackage{booktabs}`.

    One row a system: mean and standard deviation of each metric on each test set, and
    parameters. An asterisk marks a difference to the baseline that is significant over
    seeds, a dagger one over sentences, both corrected for the number of systems.
    """
    columns = [
        (test.name, metric) for test in result.test_sets for metric in result.metrics
    ]
    lines = [
        f"% {line}" for line in (escaped(result.title), "needs \\usepackage{booktabs}")
    ]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(columns) + 1)}}}", r"\toprule"]
    lines += list(heading(result))
    for system in result.systems:
        cells = [cell(result, system.name, *column) for column in columns]
        size = f"{system.parameters / 1e6:.2f}"
        lines.append(" & ".join([escaped(system.name), size, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [f"% {escaped(text)}" for text in notes(result)]
    return "\n".join(lines) + "\n"


def heading(result: ComparisonResult) -> Iterator[str]:
    """The lines above the rows."""
    width, metrics = len(result.metrics), " & ".join(map(escaped, result.metrics))
    spans = (
        rf"\multicolumn{{{width}}}{{c}}{{{escaped(test.name)}}}"
        for test in result.test_sets
    )
    yield " & & " + " & ".join(spans) + r" \\"
    for number in range(len(result.test_sets)):
        first = 3 + number * width
        yield rf"\cmidrule(lr){{{first}-{first + width - 1}}}"
    several = " & ".join([metrics] * len(result.test_sets))
    yield rf"system & M param. & {several} \\"
    yield r"\midrule"


def cell(result: ComparisonResult, system: str, test_set: str, metric: str) -> str:
    """A score, its spread, and whether it differs from the baseline."""
    score = result.score(system, test_set, metric)
    if score is None:
        return "--"
    spread = "" if score.deviation is None else rf" $\pm$ {score.deviation:.2f}"
    marks = ""
    difference = result.difference(system, test_set, metric)
    if difference is not None:
        for p, mark in (
            (difference.welch_holm, r"$^{*}$"),
            (difference.bootstrap_holm, r"$^{\dagger}$"),
        ):
            marks += mark if p is not None and p < SIGNIFICANT else ""
    return f"{score.mean:.2f}{spread}{marks}"


def notes(result: ComparisonResult) -> Iterator[str]:
    """The notes under the table."""
    seeds = ", ".join(map(str, result.seeds))
    yield f"Mean and standard deviation over seeds {seeds}; {result.budget} each."
    yield f"Baseline: {result.baseline}. Significant at {SIGNIFICANT} after Holm:"
    yield "* Welch's t-test over seeds, dagger paired bootstrap over sentences."
    yield from dict.fromkeys(f"{s.metric}|{s.signature}" for s in result.scores)


def escaped(text: str) -> str:
    """A text as LaTeX prints it, on one line."""
    return "".join(_LATEX.get(c, c) for c in " ".join(text.split()))


def score_table(result: ComparisonResult) -> Table:
    """The scores of the first metric, for `rich`."""
    metric = result.metrics[0]
    table = Table("System", title=f"{metric}, {result.budget} each")
    for heading in ("parameters", *(test.name for test in result.test_sets)):
        table.add_column(Text(heading), justify="right")
    for system in result.systems:
        cells = [plain_cell(result, system.name, t.name) for t in result.test_sets]
        table.add_row(Text(system.name), f"{system.parameters:,}", *cells)
    table.caption = (
        f"± is the standard deviation over seeds; p by Welch's test against "
        f"{result.baseline}, after Holm"
    )
    return table


def plain_cell(result: ComparisonResult, system: str, test_set: str) -> str:
    """A score, its spread, and the p-value of its difference to the baseline."""
    score = result.score(system, test_set, result.metrics[0])
    if score is None:
        return "–"
    difference = result.difference(system, test_set, result.metrics[0])
    text = f"{score.mean:.2f}"
    if score.deviation is not None:
        text += f" ± {score.deviation:.2f}"
    if difference is not None and difference.welch_holm is not None:
        text += f" (p {difference.welch_holm:.3f})"
    return text
