"""Presets of a paper, from a TOML file beside its module.

The file has the title of the `paper`, its `tables`, and the `settings` that presets
have in common. Each row of a table is a preset:

* `corpus`: the last part of the names, which ends with a direction of translation;
* `rows`: a line per model, with its name and a value, or `-`, for each column. The
  first line has the names of the columns: options of the preset, and fields of
  `PublishedFigures`, such as `loss`, `bleu.en-de` or, for the direction of the corpus,
  `bleu`. Cells at the end of a line may be missing.

Settings apply to all presets whose names they match; later settings override earlier
ones:

* `models`, `corpora`: patterns of names, such as `lowest-*-ngram`; by default all;
* `scored`: whether the presets have BLEU; by default both;
* `options`, `training`: fields of `Preset` and of `TrainingSettings`; with the option
  `front_end` a model reads recordings, see `with_front_end`;
* `model`, `task`: names of the model class, `Transformer` by default, and of the task,
  `translation` by default;
* `note`: is added to the notes of the preset.
"""

import ast
import tomllib
from collections.abc import Callable
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from keras_attnvariants import models
from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.presets.preset import TrainingSettings
from keras_attnvariants.presets.preset import with_front_end
from keras_attnvariants.presets.registry import register


def read_toml(name: str) -> dict[str, Any]:
    """The contents of a TOML file of this folder."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def register_paper(
    name: str, architecture_of: Callable[[str], Callable[..., dict[str, Any]]]
) -> None:
    """Registers the presets of a paper.

    Args:
        name: stem of the TOML file, and the first part of the names of its presets.
        architecture_of: the architecture of a model by its name in the tables.
    """
    paper = read_toml(name)
    for table in paper["tables"]:
        corpus = table["corpus"]
        for model, (options, figures) in read_table(table["rows"], corpus).items():
            chosen = [
                settings
                for settings in paper["settings"]
                if fits(settings, model, corpus, bool(figures.bleu))
            ]
            names = {"model": "Transformer", "task": "translation"}
            names |= {k: part[k] for part in chosen for k in names if k in part}
            notes = " ".join(settings.get("note", "") for settings in chosen)
            register(
                Preset(
                    name=f"{name}/{model}/{corpus}",
                    paper=paper["paper"],
                    architecture=partial(with_front_end, architecture_of(model)),
                    options=merged(chosen, "options") | options,
                    training=TrainingSettings(**merged(chosen, "training")),
                    published=figures,
                    notes=" ".join(notes.split()),
                    model=getattr(models, names["model"]),
                    task=names["task"],
                )
            )


def fits(settings: Mapping[str, Any], model: str, corpus: str, is_scored: bool) -> bool:
    """Whether settings apply to a preset, by the names of its model and corpus."""
    return settings.get("scored", is_scored) == is_scored and all(
        any(fnmatchcase(name, pattern) for pattern in settings.get(key, ["*"]))
        for key, name in (("models", model), ("corpora", corpus))
    )


def merged(settings: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """The values of all settings under a key; later ones override earlier ones."""
    return {k: v for part in settings for k, v in part.get(key, {}).items()}


def read_table(
    text: str, corpus: str
) -> dict[str, tuple[dict[str, Any], PublishedFigures]]:
    """The options and the published figures of models, by name.

    Args:
        text: the rows of a table.
        corpus: ends with the direction of translation for columns that name none.
    """
    (_, *columns), *lines = (line.split() for line in text.strip().split("\n"))
    direction = "-".join(corpus.split("-")[-2:])
    rows = {}
    for name, *cells in lines:
        options: dict[str, Any] = {}
        figures: dict[str, Any] = {}
        for column, cell in zip_longest(columns, cells, fillvalue="-"):
            if cell == "-":
                continue
            field, _, key = column.partition(".")
            value = ast.literal_eval(cell)
            if field in ("bleu", "ter", "dev_bleu", "dev_ter", "rouge", "wer"):
                figures.setdefault(field, {})[key or direction] = value
            else:
                is_figure = field in PublishedFigures.__dataclass_fields__
                (figures if is_figure else options)[field] = value
        rows[name] = options, PublishedFigures(**figures)
    return rows
