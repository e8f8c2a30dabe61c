"""One page of all measurements: what the benchmarks wrote, as Markdown tables."""

import json
from pathlib import Path
from typing import Annotated

import typer
from measuring import formatted

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

HEAD = """# Measured speed and memory

Every figure was measured by the command under its table, beside other work;
`make benchmark` measures anew. Machines differ: programs that are compared ran in
turns, and ratios are medians over the rounds. A ratio of times above 1 means slower
than what it is compared with, a ratio of tokens per second above 1 faster.
"""


def section(record: dict) -> str:
    """A report as it was written, as one section."""
    keys = list(record["rows"][0])
    numeric = [not isinstance(record["rows"][0][key], str) for key in keys]
    lines = [
        "| " + " | ".join(keys) + " |",
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
    ]
    for row in record["rows"]:
        lines.append("| " + " | ".join(formatted(row[key]) for key in keys) + " |")
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
            *lines,
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
        list[Path], typer.Argument(exists=True, help="What benchmarks wrote.")
    ],
    output: Annotated[Path, typer.Option(help="The page.")] = Path(
        "docs/PERFORMANCE.md"
    ),
) -> None:
    """Writes one page of the reports, in their order."""
    sections = [section(json.loads(path.read_text())) for path in records]
    output.write_text("\n\n".join([HEAD.strip(), *sections]) + "\n")


if __name__ == "__main__":
    app()
