"""The page from the results, by Jinja."""

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment
from jinja2 import PackageLoader
from jinja2 import StrictUndefined
from markupsafe import Markup

from keras_attnvariants.experiments.page import english
from keras_attnvariants.experiments.page import result_charts
from keras_attnvariants.experiments.page import vega_charts
from keras_attnvariants.experiments.page.analyses import analyses
from keras_attnvariants.experiments.page.analyses import common
from keras_attnvariants.experiments.page.english import differing
from keras_attnvariants.experiments.page.summary_sentences import LEVEL
from keras_attnvariants.experiments.page.summary_sentences import cost_values
from keras_attnvariants.experiments.page.summary_sentences import main_cost
from keras_attnvariants.experiments.page.summary_sentences import main_ranking
from keras_attnvariants.experiments.page.summary_sentences import ranking
from keras_attnvariants.experiments.page.summary_sentences import summary
from keras_attnvariants.experiments.result_tables import AttentionLayer
from keras_attnvariants.experiments.results import COSTS
from keras_attnvariants.experiments.results import ComparisonResult
from keras_attnvariants.utils.files import write_file

# What an attention weight of 1 is stored as.
UINT8_MAX = 255
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
        sentences: how many sentences of the attention of each system, and how many
            translations, are in it at most; `None` for all. Attention makes up most of
            the size.

    Raises:
        OSError: the file cannot be written.
    """
    write_file(Path(path), rendered(result, sentences).encode("utf-8"))


def rendered(result: ComparisonResult, sentences: int | None = None) -> str:
    """The page as text."""
    style, *scripts = (asset(name) for name in ("page.css", *SCRIPTS))
    page = environment().get_template("page.html")
    names = [system.name for system in result.systems]
    text = page.render(
        result=result,
        rank=main_ranking(result),
        rankings=list(rankings(result)),
        summary=[sentence(text, names) for text in summary(result)],
        level=LEVEL,
        percent=f"{100 * result.confidence:g}\xa0%",
        overview=list(overview(result)),
        costs=list(cost_columns(result)),
        curves=list(curves(result)),
        analyses=list(analyses(result)),
        attention=browsable(result, sentences),
        samples=list(samples(result, sentences)),
        style=style,
        scripts=scripts,
        policy=policy(style, scripts),
        names=names,
    )
    return english.printable(text)


def environment() -> Environment:
    """Jinja with everything escaped that is not our own."""
    found = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        fixed=english.fixed,
        signed=english.signed,
        probability=english.probability,
        drawing=Markup,  # noqa: S704
        cell=cell,
    )
    found.globals.update(series=series, shown=COSTS)
    return found


def asset(name: str) -> Markup:
    """A script or a style sheet of the package."""
    # Ours, as the drawings are, of which Vega-Lite escapes the text.
    return Markup((files(__package__) / "assets" / name).read_text("utf-8"))  # noqa: S704


def policy(style: str, scripts: Sequence[str]) -> str:
    """A content security policy that allows only what is in the page."""

    def hashes(texts: Sequence[str]) -> str:
        digests = (hashlib.sha256(text.encode()).digest() for text in texts)
        return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)

    return (
        f"default-src 'none'; style-src {hashes([style])}; "
        f"script-src {hashes(scripts)}; base-uri 'none'; form-action 'none'"
    )


def rankings(result: ComparisonResult) -> Iterator[dict[str, Any]]:
    """A table for each test set and metric, with a picture of the first metric."""
    for test_set in result.test_sets:
        for number, metric in enumerate(result.metrics):
            rank = ranking(result, test_set.name, metric)
            panel = result_charts.differences(result, rank) if number == 0 else None
            domain = common([panel]) if panel else None
            yield {
                "rank": rank,
                "test_set": test_set,
                "is_first": number == 0,
                "picture": vega_charts.panel_svg(panel, domain, 300) if panel else "",
                "seeds": any(len(s.values) > 1 for s in rank.scores.values()),
            }


def overview(result: ComparisonResult) -> Iterator[tuple[str, str]]:
    """The picture at the top for a wide and for a narrow page, with their classes."""
    rank, cost = main_ranking(result), main_cost(result)
    for kind, width, height in (("wide", 780, 400), ("narrow", 280, 440)):
        drawn = result_charts.quality_against_cost(result, rank, cost, width, height)
        if drawn:
            yield kind, drawn


def cost_columns(result: ComparisonResult) -> Iterator[dict[str, Any]]:
    """The costs that are known, with the best value of each."""
    for name, shown in COSTS.items():
        values = cost_values(result, name)
        if values:
            yield {"shown": shown, "values": values}


def curves(result: ComparisonResult) -> Iterator[tuple[str, str]]:
    """Titles and drawings of the learning curves."""
    for panel in result_charts.curves(result):
        yield panel.title, vega_charts.panel_svg(panel, None, 300, 220)


def samples(result: ComparisonResult, most: int | None) -> Iterator[dict[str, Any]]:
    """Sentences with the translations that differ, and who made each."""
    for sample in result.samples[:most]:
        texts: dict[str, list[str]] = {}
        for system, text in sample.translations.items():
            texts.setdefault(text, []).append(system)
        base = sample.translations.get(result.baseline, "")
        yield {
            "sample": sample,
            "translations": [
                {
                    "systems": systems,
                    "reference": differing(text, sample.reference),
                    "baseline": differing(text, base),
                }
                for text, systems in texts.items()
            ],
        }


def quantized(weights: Sequence[Any]) -> np.ndarray:
    """Weights from 0 to 1 as bytes; each is within 1/510 of what it was.

    Args:
        weights: nested sequences of any depth.
    """
    values = np.nan_to_num(np.asarray(weights, "float64"))
    return np.rint(UINT8_MAX * np.clip(values, 0, 1)).astype("uint8")


def packed(blocks: Iterable[np.ndarray]) -> str:
    """Bytes one after another, compressed (zlib), in base64."""
    data = b"".join(block.tobytes() for block in blocks)
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def browsable(
    result: ComparisonResult, most: int | None = None
) -> list[dict[str, Any]]:
    """The content of the browser of attention, as values of JSON.

    Args:
        result: the comparison.
        most: sentences of a system at most; `None` for all.

    Returns:
        For each system its name and its sentences, each with `text`, `axes` (lists of
        tokens), `layers` (whose `rows` and `columns` are numbers of axes) and `data`:
        the weights of the layers in turn, `[heads, rows, columns]`.
    """
    texts = {(s.test_set, s.number): s.source for s in result.samples}
    found = []
    for system in result.systems:
        own = [layer for layer in result.attention if layer.system == system.name]
        own.sort(key=lambda layer: (layer.test_set, layer.number))
        groups = groupby(own, lambda layer: (layer.test_set, layer.number))
        sentences = [
            attention_sentence(texts.get(key, ""), list(rows)) for key, rows in groups
        ]
        if sentences:
            found.append({"name": system.name, "sentences": sentences[:most]})
    return found


def attention_sentence(text: str, layers: Sequence[AttentionLayer]) -> dict[str, Any]:
    """The weights of all layers on a sentence."""
    axes: dict[tuple[str, ...], int] = {}

    def axis(tokens: Sequence[str]) -> int:
        return axes.setdefault(tuple(tokens), len(axes))

    described = [
        {
            "place": layer.place,
            "layer": layer.layer,
            "heads": len(layer.heads),
            "rows": axis(layer.queries),
            "columns": axis(layer.keys),
            "query": layer.query_order,
            "key": layer.key_order,
            "quadrant": layer.is_quadrant,
        }
        for layer in layers
    ]
    return {
        "text": text or " ".join(next(iter(axes))),
        "layers": described,
        "axes": [list(tokens) for tokens in axes],
        "data": packed(quantized(layer.heads) for layer in layers),
    }


def series(names: Sequence[str], name: str) -> dict[str, str]:
    """The color and the dashes of a series in the pictures."""
    number = list(names).index(name)
    dashes = vega_charts.DASHES[
        number // len(vega_charts.SERIES) % len(vega_charts.DASHES)
    ]
    return {
        "color": vega_charts.SERIES[number % len(vega_charts.SERIES)],
        "dashes": " ".join(map(str, dashes)),
    }


def sentence(text: str, names: Sequence[str]) -> Markup:
    """A sentence with the names of systems marked, and without breaks in figures."""
    for tied in (" %", " < ", " ± "):
        text = text.replace(tied, tied.replace(" ", "\xa0"))
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    parts = re.split(rf"(?<![\w-])({listed})(?![\w-])", text)
    marked = (
        Markup("<b>{}</b>").format(part) if number % 2 else Markup.escape(part)
        for number, part in enumerate(parts)
    )
    return Markup("").join(marked)


def cell(value: Any) -> str:
    """A value of a table."""
    if value is None:
        return "–"
    return english.fixed(value, 3) if isinstance(value, float) else str(value)
