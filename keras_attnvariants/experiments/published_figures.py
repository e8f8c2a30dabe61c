"""The figures of a paper beside ours."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import PublishedFigures
from keras_attnvariants.presets import get
from keras_attnvariants.presets import names
from keras_attnvariants.presets.kav import PUBLISHED

# What the papers compare their variants with.
BASELINES = ("base", "baseline", "self-attention", "seq2seq-attn")


class Published(NamedTuple):
    """The figures that a paper prints about a system.

    Attributes:
        preset: the name of the preset that has the figures; `""` for none.
        figures: by name and direction, such as `"bleu en-de"`.
        differences: the same minus those of the paper's baseline on that corpus.
    """

    preset: str = ""
    figures: Mapping[str, float] = {}
    differences: Mapping[str, float] = {}


def published(preset: Preset, name: str | None = None) -> Published:
    """The published figures of a preset.

    One of our own presets has those of the preset whose architecture it has.

    Args:
        preset: what a system is built from.
        name: of the preset whose figures stand beside ours, if it is another.
    """
    paper, variant, _ = preset.name.split("/")
    ours = PUBLISHED.get(variant) if paper == "kav" else preset.name
    if (name or ours) is None:
        return Published()
    chosen = get(str(name or ours))
    figures = flat(chosen.published)
    if not figures:
        return Published()
    paper, _, corpus = chosen.name.split("/")
    known = [f"{paper}/{variant}/{corpus}" for variant in BASELINES]
    baselines = [flat(get(known).published) for known in known if known in names()]
    differences = {
        figure: round(value - baseline[figure], 6)
        for baseline in baselines
        for figure, value in figures.items()
        if figure in baseline
    }
    return Published(chosen.name, figures, differences)


def flat(figures: PublishedFigures) -> dict[str, float]:
    """The figures that there are, each with one name."""
    found: dict[str, float] = {}
    for name, value in asdict(figures).items():
        if isinstance(value, Mapping):
            found |= {f"{name} {key}": float(item) for key, item in value.items()}
        elif value is not None:
            found[name] = float(value)
    return found
