"""All presets by name: getting one, and lists of them, which print as tables."""

import difflib
import html
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from io import StringIO
from itertools import combinations
from itertools import groupby
from typing import Any
from typing import overload

import keras
from rich.console import Console
from rich.console import Group
from rich.table import Table
from rich.text import Text

from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import PublishedFigures
from keras_attnvariants.utils.checks import check_optional_integer
from keras_attnvariants.utils.lines import split_lines

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
    """The preset of this name.

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


def nearest(wanted: str, count: int = 4) -> list[str]:
    """The names that are closest to `wanted`, as a whole or in a part."""
    names_with: dict[str, list[str]] = {}
    for name in _presets:
        parts = name.split("/")
        for start, end in combinations(range(len(parts) + 1), 2):
            names_with.setdefault("/".join(parts[start:end]), []).append(name)
    matches = difflib.get_close_matches(wanted, names_with, n=3 * count, cutoff=0.5)
    found = dict.fromkeys(name for part in matches for name in names_with[part])
    return [*found][:count]


COLUMNS = ("preset", "size", "params", "published")


def list_presets(
    name: str = "",
    *,
    paper: str = "",
    variant: str | type[keras.layers.Layer] = "",
    min_parameters: int | None = None,
    max_parameters: int | None = None,
) -> "PresetList":
    """The presets that fit all of the filters; without filters, all presets.

    Args:
        name: text in the name; upper and lower case are the same.
        paper: text in the first part of the name or in the title, such as
            `"you2020"` or `"Nguyen"`.
        variant: attention class that the model contains, or the name of one; or the
            middle part of the preset's name, such as `"hc-sa"`.
        min_parameters, max_parameters: bounds of the number of parameters, both
            inclusive.

    Returns:
        A sequence of `Preset`, which prints as a table.

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
    least, most = min_parameters or 0, max_parameters or float("inf")
    is_bounded = not (min_parameters is None and max_parameters is None)
    return PresetList(
        preset
        for preset in _presets.values()
        if name.lower() in preset.name.lower()
        and is_of_paper(preset, paper)
        and has_variant(preset, variant)
        and (not is_bounded or least <= preset.parameters <= most)
    )


def is_of_paper(preset: Preset, paper: str) -> bool:
    """Whether the paper's key or title contains this text."""
    key = preset.name.split("/")[0]
    return paper.lower() in key.lower() or paper.lower() in preset.paper.lower()


def has_variant(preset: Preset, variant: str | type[keras.layers.Layer]) -> bool:
    """Whether a preset is of a variant, or contains its attention class."""
    if isinstance(variant, str):
        return variant in ("", preset.variant) or variant in preset.attention
    registered = keras.saving.get_registered_name(variant)
    return registered.split(">")[-1] in preset.attention


class PresetList(Sequence[Preset]):
    """An immutable sequence of presets that prints as a table, paper by paper.

    Its tables have the name, layers x width, the number of parameters, and published
    figures: BLEU by direction; where there is none, BLEU on the development set, or
    ROUGE. They fit into 80 columns.
    """

    def __init__(self, presets: "Sequence[Preset] | Iterator[Preset]" = ()) -> None:
        self._presets = tuple(presets)

    @overload
    def __getitem__(self, index: int) -> Preset: ...

    @overload
    def __getitem__(self, index: slice) -> "PresetList": ...

    def __getitem__(self, index: int | slice) -> "Preset | PresetList":
        if isinstance(index, slice):
            return PresetList(self._presets[index])
        return self._presets[index]

    def __len__(self) -> int:
        return len(self._presets)

    @property
    def names(self) -> list[str]:
        """The names of the presets."""
        return [preset.name for preset in self]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One JSON-able dict per preset, with more than the table shows."""
        return [
            {
                "name": preset.name,
                "paper": preset.paper,
                "variant": preset.variant,
                "corpus": preset.corpus,
                "model": preset.model.__name__,
                "attention": sorted(preset.attention),
                "size": size(preset),
                "parameters": preset.parameters,
                "published": dict(figures(preset.published)),
            }
            for preset in self
        ]

    def to_table(self) -> Table:
        """All presets in one table, for `rich`."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        table.add_column("preset", no_wrap=True)
        table.add_column("size", no_wrap=True)
        table.add_column("params", no_wrap=True, justify="right")
        table.add_column("published")
        for row in self._rows():
            table.add_row(*row)
        return table

    def _by_paper(self) -> "list[tuple[str, PresetList]]":
        """The presets of each paper, with its title."""
        groups = groupby(self, key=lambda preset: preset.paper)
        return [(paper, PresetList(presets)) for paper, presets in groups]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """The cells of the table."""
        shown = [figures(preset.published) for preset in self]
        digits = max((decimals(v) for row in shown for v in row.values()), default=0)
        return [
            (
                preset.name,
                size(preset),
                f"{preset.parameters / 1e6:.2f}M",
                # Non-breaking: a narrow terminal shows one figure per line.
                ", ".join(
                    f"{k}\N{NO-BREAK SPACE}{v:.{digits}f}" for k, v in row.items()
                ),
            )
            for preset, row in zip(self, shown, strict=True)
        ]

    def __rich__(self) -> Group:
        if not self:
            return Group(Text("No presets."))
        parts: list[Text | Table] = []
        for paper, presets in self._by_paper():
            parts += [Text(""), Text(paper, style="bold"), presets.to_table()]
        return Group(*parts[1:])

    def __repr__(self) -> str:
        console = Console(file=StringIO(), width=80, record=True)
        console.print(self)
        lines = split_lines(console.export_text().replace("\N{NO-BREAK SPACE}", " "))
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """The tables in a notebook."""
        parts = []
        for paper, presets in self._by_paper():
            rows = [f"<tr>{''.join(f'<th>{name}</th>' for name in COLUMNS)}</tr>"]
            for row in presets._rows():
                cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
                rows.append(f"<tr>{cells}</tr>")
            caption = f"<caption>{html.escape(paper)}</caption>"
            parts.append(f"<table>{caption}{''.join(rows)}</table>")
        return "".join(parts) or "No presets."


def size(preset: Preset) -> str:
    """Layers x width, such as `"6x512"`, or `"6+8x512"` if the decoder is deeper."""
    options = preset.options
    layers = options.get("num_layers", 1), options.get("num_decoder_layers")
    return f"{'+'.join(str(n) for n in layers if n)}x{options['hidden_dim']}"


def figures(published: PublishedFigures) -> Mapping[str, float]:
    """The figures that a table has room for."""
    if published.bleu or not published.dev_bleu:
        return published.bleu or published.rouge
    return {f"dev {way}": score for way, score in published.dev_bleu.items()}


def decimals(score: float) -> int:
    """Number of decimals that a figure is printed with."""
    return len(str(score).partition(".")[2])
