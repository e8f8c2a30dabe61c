"""Renders results as a page, with Jinja."""

import base64
import hashlib
import json
import os
import zlib
from collections import namedtuple
from collections.abc import Iterator
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from jinja2 import PackageLoader
from jinja2 import StrictUndefined

from keras_attnvariants.analysis import ANALYSES
from keras_attnvariants.analysis.pictures import Panel
from keras_attnvariants.analysis.tables import Table
from keras_attnvariants.analysis.tables import readable
from keras_attnvariants.evaluation import significance
from keras_attnvariants.experiments.page import charts
from keras_attnvariants.experiments.page import english
from keras_attnvariants.experiments.page import ranking
from keras_attnvariants.experiments.result_parts import AnalysisTable
from keras_attnvariants.experiments.result_parts import SampleSentence
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.utils.files import write_file
from keras_attnvariants.utils.records import grouped

SCRIPTS = ("tables.js", "charts.js", "attention.js")


def write_page(
    result: ComparisonResult,
    path: str | os.PathLike[str],
    sentences: int | None = None,
) -> None:
    """Writes a comparison as one HTML file, which loads nothing from anywhere.

    Needs the extra `compare`.

    Args:
        result: the comparison.
        path: the file, which appears complete or not at all.
        sentences: largest number of translations, and of sentences with attention for
            each system; `None` for all. Attention makes up most of the size.

    Raises:
        OSError: the file cannot be written.
    """
    write_file(Path(path), rendered(result, sentences).encode("utf-8"))


def rendered(result: ComparisonResult, sentences: int | None = None) -> str:
    """The page as text."""
    assets = files(__package__) / "assets"
    texts = [(assets / name).read_text("utf-8") for name in ("page.css", *SCRIPTS)]
    page = environment().get_template("page.html")
    text = page.render(
        result=result,
        names=[system.name for system in result.systems],
        percent=f"{100 * result.confidence:g}\xa0%",
        main=ranking.Ranking.main(result),
        main_cost=ranking.main_cost(result),
        costs=ranking.cost_values(result),
        curves=[*charts.points(result), *charts.curves(result)],
        analyses=list(analyses(result)),
        attention=attention_data(result, sentences),
        samples=[(s, grouped_texts(s)) for s in result.samples[:sentences]],
        style=texts[0],
        scripts=texts[1:],
        policy=policy(texts[0], texts[1:]),
    )
    return english.printable(text)


def environment() -> Environment:
    """A Jinja environment that escapes everything but our own markup."""
    found = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals.update(
        charts=charts, english=english, ranking=ranking, significance=significance
    )
    filters = english.fixed, english.signed, english.probability, english.counted, cell
    found.filters.update({function.__name__: function for function in filters})
    return found


def policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy that allows only the content of the page."""

    def hashes(texts: Sequence[str]) -> str:
        digests = (hashlib.sha256(text.encode()).digest() for text in texts)
        return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)

    return (
        f"default-src 'none'; style-src {hashes([style])}; "
        f"script-src {hashes(scripts)}; base-uri 'none'; form-action 'none'"
    )


def analyses(result: ComparisonResult) -> Iterator[dict[str, Any]]:
    """The analyses of a comparison, in order.

    Yields:
        For each `first`, the first table with rows; `notes`, systems without results
        and the reasons; `panels`; `palette`, names of series in the order of their
        colors; `shown`, those that are in a chart; `columns` and `rows` of all tables.
    """
    names = [system.name for system in result.systems]
    for name, tables in grouped(result.analyses, "analysis").items():
        first = next((table for table in tables if table.rows), tables[0])
        several = any(table.system for table in tables)
        panels = [
            shown_panel(panel, table.system)
            for table in tables
            if table.rows and name in ANALYSES
            for panel in panels_of(table)
        ]
        found = dict.fromkeys(point.series for p in panels for point in p.points)
        palette = names if found.keys() <= set(names) else list(found)
        yield {
            "first": first,
            "notes": [(table.system, table.note) for table in tables if table.note],
            "panels": panels,
            "palette": palette,
            "shown": [series for series in palette if series in found],
            "columns": ("system", *first.columns) if several else first.columns,
            "rows": [
                (table.system, *row) if several else row
                for table in tables
                for row in table.rows
            ],
        }


def panels_of(table: AnalysisTable) -> list[Panel]:
    """The panels of a table of `kav.analysis`."""
    row = namedtuple("row", table.columns)  # type: ignore[misc]
    rows = (row(*values) for values in table.rows)
    return Table.of(table.analysis, rows, table.sentences).panels()


def shown_panel(panel: Panel, system: str) -> Panel:
    """A panel of `kav.analysis` with its values in words."""
    points = []
    for point in panel.points:
        label = (
            point.label
            or f"{point.series}, {panel.across} {english.number(float(point.x))}"
        )
        text = f"{label}: {english.fixed(point.y)} {panel.up}".rstrip()
        if point.low is not None and point.high is not None:
            text += (
                f", interval {english.fixed(point.low)} to {english.fixed(point.high)}"
            )
        points.append(point._replace(label=text))
    # The page has the title of a table above its only panel.
    title = panel.title if panel.kind != "points" else ""
    title = ": ".join(part for part in (system, title) if part)
    return panel._replace(title=title, points=points, zero="difference" in panel.up)


def grouped_texts(sample: SampleSentence) -> dict[str, list[str]]:
    """The different translations of a sentence, each with its systems."""
    texts: dict[str, list[str]] = {}
    for system, text in sample.translations.items():
        texts.setdefault(text, []).append(system)
    return texts


def attention_data(result: ComparisonResult, most: int | None = None) -> str:
    """The data of the attention browser: JSON, compressed (zlib), in base64.

    Args:
        result: the comparison.
        most: largest number of sentences of a system; `None` for all.

    Returns:
        A list of systems, each with its `name` and its `sentences`: `text` and
        `layers`, of which each is an `AttentionLayer`. Empty if there are no weights.
    """
    texts = {(s.test_set, s.number): s.source for s in result.samples}
    systems = [
        {
            "name": system,
            "sentences": [
                {
                    "text": texts.get(key) or " ".join(own[0].queries),
                    "layers": list(map(vars, own)),
                }
                for key, own in grouped(layers, "test_set", "number").items()
            ][:most],
        }
        for system, layers in grouped(result.attention, "system").items()
    ]
    content = json.dumps(systems).encode() if systems else b""
    return base64.b64encode(zlib.compress(content, 9)).decode() if content else ""


def cell(value: Any) -> str:
    """A value of a table."""
    return english.fixed(value, 3) if isinstance(value, float) else readable(value)
