"""Writes one page of Markdown tables from the results of all benchmarks."""

import json
from pathlib import Path
from typing import Annotated

import typer
from measuring import formatted

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HEAD = """# Measured speed and memory

The command under each table measured its figures, on a machine that did other work
too; `make benchmark` repeats all of them. Programs that are compared took turns, and
ratios are medians over the rounds. A ratio of times above 1 means slower, a ratio of
tokens per second above 1 means faster.
"""


SUMMARY = """## Bars

The goals of the project, and what was measured. The tables below say how.
"""


def summary(records: list[dict]) -> str:
    """All rows that have a bar, from all reports."""
    rows = [
        {
            "measurement": record["title"],
            "of": label(row),
            "measured": value,
            "bar": f"{'≤' if record['at_most'] else '≥'} {formatted(row['bar'])}",
            "reached": "yes" if reached(value, row["bar"], record) else "no",
        }
        for record in records
        for row in record["rows"]
        if row.get("bar") is not None
        for value in [judged(row, record)]
    ]
    return "\n".join([SUMMARY, *table(rows)])


def judged(row: dict, record: dict) -> float:
    """The figure that is compared with a bar; the best, if there are several."""
    best = min if record["at_most"] else max
    return best(row[key] for key in record["judged"])


def reached(value: float, bar: float, record: dict) -> bool:
    """Whether a figure is on the right side of a bar."""
    return value <= bar if record["at_most"] else value >= bar


def label(row: dict) -> str:
    """What distinguishes a row: its texts, and the size of its batch."""
    texts = [value for value in row.values() if isinstance(value, str)]
    size = [f"batch {row['batch']}"] if isinstance(row.get("batch"), int) else []
    return ", ".join([*size, *(text for text in texts if " of " not in text)])


def table(rows: list[dict]) -> list[str]:
    """Lines of Markdown; columns of numbers are aligned to the right."""
    keys = list(rows[0])
    numeric = [not isinstance(rows[0][key], str) for key in keys]
    lines = [
        "| " + " | ".join(keys) + " |",
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
    ]
    for row in rows:
        lines.append("| " + " | ".join(formatted(row[key]) for key in keys) + " |")
    return lines


def section(record: dict) -> str:
    """A report as it was written, as one section."""
    releases = ", ".join(
        f"{name} {release}" for name, release in record["versions"].items()
    )
    return "\n".join(
        [
            f"## {record['title']}",
            "",
            record["text"],
            "",
            f"Setting: {record['setting']}.",
            "",
            *table(record["rows"]),
            "",
            f"{record['machine']}; {releases}.",
            "",
            "```console",
            f"$ {record['command']}",
            "```",
        ]
    )


@app.command()
def main(
    records: Annotated[
        list[Path], typer.Argument(exists=True, help="Files that the benchmarks wrote.")
    ],
    output: Annotated[Path, typer.Option(help="Page to write.")] = Path(
        "docs/PERFORMANCE.md"
    ),
) -> None:
    """Writes one page of the reports, in their order."""
    reports = [json.loads(path.read_text()) for path in records]
    parts = [HEAD.strip(), summary(reports), *map(section, reports)]
    output.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    app()
