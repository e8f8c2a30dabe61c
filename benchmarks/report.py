"""Writes the results of benchmarks into a page of Markdown tables."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer
from measuring import formatted

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HEAD = """# Measured speed and memory

The command under each table measured its figures, on a machine that did other work
too; `make benchmark` repeats most of them. Programs that are compared took turns, and
ratios are medians over the rounds. A ratio of times above 1 means slower, a ratio of
tokens per second above 1 means faster.
"""


# A section written by hand, which stays before all others.
IN_SHORT = "In short"
BARS = "Bars"
SUMMARY = f"""## {BARS}

How many goals of the project each measurement reaches, and what misses its goal, with
the measured figure. The tables below have all figures, and say how they were measured.

| measurement | reached | missed |
|---|---|---|
"""


def bars(record: dict) -> str:
    """The line of the summary for one report; empty if no row has a bar."""
    barred = [row for row in record["rows"] if row.get("bar") is not None]
    sign = "≤" if record["at_most"] else "≥"
    missed = [
        f"{label(row)}: {formatted(value)} instead of {sign} {formatted(row['bar'])}"
        for row in barred
        for value in [judged(row, record)]
        if not reached(value, row["bar"], record)
    ]
    count = f"{len(barred) - len(missed)} of {len(barred)}"
    return f"| {record['title']} | {count} | {'; '.join(missed)} |" if barred else ""


def judged(row: dict, record: dict) -> float:
    """The figure to compare with a bar; the best, if there are several."""
    best = min if record["at_most"] else max
    return best(row[key] for key in record["judged"])


def reached(value: float, bar: float, record: dict) -> bool:
    """Whether a figure is on the right side of a bar."""
    return value <= bar if record["at_most"] else value >= bar


def label(row: dict) -> str:
    """The name of a row: its texts and its batch, or its first column."""
    texts = [value for value in row.values() if isinstance(value, str)]
    size = [f"batch {row['batch']}"] if isinstance(row.get("batch"), int) else []
    words = [*size, *(text for text in texts if " of " not in text)]
    name, value = next(iter(row.items()))
    return ", ".join(words) or f"{formatted(value)} {name}"


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


def updated(page: str, records: list[dict]) -> str:
    """A page in which reports replace those with the same titles.

    Other reports on the page stay. New ones come first.

    Raises:
        ValueError: a report was made on another kind of processor.
    """
    sections, rows = read(page)
    for record in records:
        check_machine(sections.get(record["title"], ""), record)
    head = [HEAD.strip(), *filter(None, [sections.pop(IN_SHORT, None)])]
    new = {record["title"]: section(record) for record in records}
    added = {title: text for title, text in new.items() if title not in sections}
    sections = added | sections | new
    rows = [row for row in rows if measurement(row) not in new]
    rows += filter(None, map(bars, records))
    rows.sort(key=lambda row: list(sections).index(measurement(row)))
    summary = SUMMARY + "\n".join(rows)
    return "\n\n".join([*head, summary, *sections.values()]) + "\n"


def check_machine(old: str, record: dict) -> None:
    """Raises `ValueError` if a report would replace one of another kind of processor.

    Args:
        old: the section with the same title; one without instructions fits all.
        record: the report.
    """
    machines = re.findall(r"^(.* \(.*\).*, \d+ cores); ", old, re.MULTILINE)
    if machines and machines != [record["machine"]]:
        raise ValueError(
            f"Reports of one title must be made on one kind of processor: give "
            f"{record['title']!r} a --suffix. Received: {record['machine']}, in the "
            f"place of {machines[0]}"
        )


def read(page: str) -> tuple[dict[str, str], list[str]]:
    """The reports of a page, by title, and the rows of its summary."""
    _, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: f"## {part.strip()}" for part in parts}
    lines = sections.pop(BARS, "").splitlines()
    return sections, [line for line in lines if line.startswith("| ")][1:]


def measurement(row: str) -> str:
    """The title of the report from which a row of the summary is taken."""
    return row.split("|")[1].strip()


@app.command()
def main(
    records: Annotated[
        list[Path], typer.Argument(exists=True, help="Files that the benchmarks wrote.")
    ],
    output: Annotated[Path, typer.Option(help="Page to write.")] = Path(
        "docs/PERFORMANCE.md"
    ),
    suffix: Annotated[
        str, typer.Option(help="End of the titles, such as ' without AVX512'.")
    ] = "",
) -> None:
    """Writes reports into a page; others that are there stay."""
    reports = [json.loads(path.read_text()) for path in records]
    reports = [record | {"title": record["title"] + suffix} for record in reports]
    page = output.read_text() if output.exists() else ""
    output.write_text(updated(page, reports))


if __name__ == "__main__":
    app()
