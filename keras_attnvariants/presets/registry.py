"""The registry of presets: access by name, and lists that print as tables."""

import difflib
import math
from collections import UserList
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import combinations
from itertools import groupby

import keras
from rich.console import Group
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.records import as_text

_presets: dict[str, Preset] = {}


def register(preset: Preset) -> Preset:
    """Adds a preset under its name, and returns it.

    Raises:
        ValueError: the name is not `paper/variant/corpus`, or it is taken.
    """
    if preset.name.count("/") != 2:
        raise ValueError(
            f"The name of a preset must be paper/variant/corpus. "
            f"Received: {preset.name!r}"
        )
    if preset.name in _presets:
        raise ValueError(
            f"A preset of this name is already registered. Received: {preset.name!r}"
        )
    _presets[preset.name] = preset
    return preset


def names() -> list[str]:
    """The names of all presets, in the order of the papers and their tables."""
    return list(_presets)


def get(name: str) -> Preset:
    """The preset with a name.

    A name may be cut at a hyphen if only one preset continues it:
    `you2020/hc-sa/iwslt16` is `you2020/hc-sa/iwslt16-en-de`. You et al. write `/-sa`
    and `/-ff` for models without these sub-layers. Here they are called `-no-sa` and
    `-no-ff`; both spellings are understood.

    Raises:
        ValueError: no preset has this name, or several continue it; the message
            lists the closest names.
    """
    wanted = name.replace("/-", "-no-")
    if wanted in _presets:
        return _presets[wanted]
    longer = [known for known in _presets if known.startswith(f"{wanted}-")]
    if len(longer) == 1:
        return _presets[longer[0]]
    near = longer or nearest(wanted)
    hint = f"the nearest are {', '.join(near)}" if near else "`names()` lists them all"
    raise ValueError(
        f"`name` must be the name of one preset; {hint}. Received: {name!r}"
    )


def nearest(wanted: str) -> list[str]:
    """Up to four names that are closest to `wanted`, as a whole or in a part."""
    names_with: dict[str, list[str]] = {}
    for name in _presets:
        parts = name.split("/")
        for start, end in combinations(range(len(parts) + 1), 2):
            names_with.setdefault("/".join(parts[start:end]), []).append(name)
    # Several parts of one name may match.
    matches = difflib.get_close_matches(wanted, names_with, n=12, cutoff=0.5)
    found = dict.fromkeys(name for part in matches for name in names_with[part])
    return [*found][:4]


def list_presets(
    name: str = "",
    *,
    paper: str = "",
    variant: str | type[keras.layers.Layer] = "",
    min_parameters: int | None = None,
    max_parameters: int | None = None,
) -> "PresetList":
    """The presets that match all filters; without filters, all presets.

    Args:
        name: text in the name, ignoring case.
        paper: text in the first part of the name or in the title, such as
            `"you2020"` or `"Nguyen"`.
        variant: attention class that the model contains, or the name of one; or the
            middle part of the preset's name, such as `"hc-sa"`.
        min_parameters, max_parameters: inclusive bounds of the number of parameters.

    Returns:
        A list of `Preset`, which prints as a table.

    Raises:
        ValueError: a bound is not a positive integer.

    Example:

    >>> from keras_attnvariants import presets
    >>> presets.list("hc-sa/iwslt16")
    You, Sun and Iyyer 2020, Hard-Coded Gaussian Attention for NMT, ACL 2020
    preset                       size   params  published
    you2020/hc-sa/iwslt16-en-de  5x288  15.48M  en-de 30.3, de-en 34.8
    >>> len(presets.list(paper="you2020", variant="HardCodedCrossAttention"))
    10
    """
    check_optional_integer("min_parameters", min_parameters)
    check_optional_integer("max_parameters", max_parameters)
    if not isinstance(variant, str):
        variant = keras.saving.get_registered_name(variant).split(">")[-1]
    found = PresetList(
        preset
        for preset in _presets.values()
        if name.lower() in preset.name.lower()
        and paper.lower() in f"{preset.name.split('/')[0]}\n{preset.paper}".lower()
        and (variant in ("", preset.variant) or variant in preset.attention)
    )
    if min_parameters is None and max_parameters is None:
        return found
    least, most = min_parameters or 0, max_parameters or math.inf
    return PresetList(p for p in found if least <= p.parameters <= most)


class PresetList(UserList[Preset], JupyterMixin):
    """A list of presets that prints as one table per paper, also in a notebook.

    The tables have the name, layers x width, the number of parameters, and published
    figures: BLEU by direction; where there is none, BLEU on the development set, ROUGE
    or word error rates. They fit into 80 columns.
    """

    @property
    def names(self) -> list[str]:
        """The names of the presets."""
        return [preset.name for preset in self]

    def __rich__(self) -> Group:
        if not self:
            return Group(Text("No presets."))
        parts: list[Text | Table] = []
        for paper, presets in groupby(self, key=lambda preset: preset.paper):
            parts += [Text(""), Text(paper, style="bold"), table([*presets])]
        return Group(*parts[1:])

    def __repr__(self) -> str:
        return as_text(self, width=80).replace("\N{NO-BREAK SPACE}", " ")


def table(presets: Sequence[Preset]) -> Table:
    """The table of the presets of a paper."""
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column("preset", no_wrap=True)
    grid.add_column("size", no_wrap=True)
    grid.add_column("params", no_wrap=True, justify="right")
    grid.add_column("published")
    shown = [figures(preset.published) for preset in presets]
    digits = max((decimals(v) for row in shown for v in row.values()), default=0)
    for preset, row in zip(presets, shown, strict=True):
        # Non-breaking: a narrow terminal shows one figure per line.
        cells = (f"{key}\N{NO-BREAK SPACE}{row[key]:.{digits}f}" for key in row)
        millions = f"{preset.parameters / 1e6:.2f}M"
        grid.add_row(preset.name, size(preset), millions, ", ".join(cells))
    return grid


def size(preset: Preset) -> str:
    """Layers x width, such as `"6x512"`, or `"6+8x512"` if the decoder is deeper."""
    options = preset.options
    layers = options.get("num_layers", 1), options.get("num_decoder_layers")
    return f"{'+'.join(str(n) for n in layers if n)}x{options['hidden_dim']}"


def figures(published: PublishedFigures) -> Mapping[str, float]:
    """The figures that a table has room for."""
    if published.bleu or not published.dev_bleu:
        return published.bleu or published.rouge or published.wer
    return {f"dev {way}": score for way, score in published.dev_bleu.items()}


def decimals(score: float) -> int:
    """Number of decimals with which a figure is printed."""
    return len(str(score).partition(".")[2])
