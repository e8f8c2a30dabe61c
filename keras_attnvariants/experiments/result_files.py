"""Writes the results of a comparison: JSON, CSV and the page."""

from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from keras_attnvariants.experiments.checked_tables import path_name
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.utils.records import write_csv
from keras_attnvariants.utils.records import write_table

RESULTS = "results.json"
PAGE = "report.html"
# Packages of the extra `compare`.
NEEDED = ("scipy", "jinja2", "vl_convert")


def write_all(result: ComparisonResult, folder: Path) -> None:
    """Writes everything into the folder of the comparison.

    Raises:
        OSError: a file cannot be written.
    """
    from keras_attnvariants.experiments.page import write_page

    result.write(folder / RESULTS)
    for name, rows in tables(result).items():
        write_table(folder / f"{name}.csv", rows)
    for number, table in enumerate(result.analyses, start=1):
        if table.rows:
            system = path_name(table.system or "all")
            path = folder / "analyses" / f"{number:02}-{table.analysis}-{system}.csv"
            path.parent.mkdir(exist_ok=True)
            write_csv(path, [table.columns, *table.rows])
    write_page(result, folder / PAGE)


def tables(result: ComparisonResult) -> dict[str, list[dict[str, Any]]]:
    """The rows of the tables by name; rows of a table have the same columns."""
    systems = [
        {
            "system": system.name,
            "preset": system.preset,
            "changes": ", ".join(f"{k} {v}" for k, v in system.changes.items()),
            **result.costs(system.name),
        }
        for system in result.systems
    ]
    scores = []
    for score in result.scores:
        row = dict(vars(score))
        by_seed = dict(zip(row.pop("seeds"), row.pop("values"), strict=True))
        signature = row.pop("signature")
        seeds = {f"seed {seed}": by_seed.get(seed) for seed in result.seeds}
        scores.append({**row, **seeds, "signature": signature})
    runs = [
        {name: value for name, value in vars(run).items() if name != "curve"}
        for run in result.runs
    ]
    differences = [vars(row) for row in result.differences]
    return dict(systems=systems, runs=runs, scores=scores, differences=differences)


def score_table(result: ComparisonResult) -> Table:
    """The scores of the first metric, for `rich`."""
    metric = result.metrics[0]
    table = Table("System", title=f"{metric}, {result.budget} each")
    for heading in ("parameters", *(test.name for test in result.test_sets)):
        table.add_column(Text(heading), justify="right")
    rows = {system.name: f"{system.parameters:,}" for system in result.systems}
    for system, parameters in (rows | dict.fromkeys(result.untrained, "–")).items():
        cells = [plain_cell(result, system, t.name) for t in result.test_sets]
        table.add_row(Text(system, overflow="fold"), parameters, *cells)
    table.caption = (
        f"± is the standard deviation over seeds; p by Dunnett's test against "
        f"{result.baseline}"
    )
    return table


def plain_cell(result: ComparisonResult, system: str, test_set: str) -> str:
    """A score, its spread, and the p-value of its difference from the baseline."""
    score = result.score(system, test_set, result.metrics[0])
    if score is None:
        return "–"
    difference = result.difference(system, test_set, result.metrics[0])
    text = f"{score.mean:.2f}"
    if score.deviation is not None:
        text += f" ± {score.deviation:.2f}"
    if difference is not None and difference.dunnett is not None:
        text += f" (p {difference.dunnett:.3f})"
    return text
