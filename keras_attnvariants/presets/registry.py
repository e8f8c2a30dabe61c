"""The list of presets."""

import difflib
from collections.abc import Mapping
from collections.abc import Sequence
from itertools import combinations
from itertools import groupby

from rich.console import Console
from rich.table import Table

from keras_attnvariants.presets.preset import Preset
from keras_attnvariants.presets.preset import Published

_presets: dict[str, Preset] = {}


def register(preset: Preset) -> Preset:
    """Adds a preset under its name.

    Raises:
        ValueError: the name is taken.
    """
    if preset.name in _presets:
        raise ValueError(f"This preset exists already. Received: {preset.name!r}")
    _presets[preset.name] = preset
    return preset


def names() -> list[str]:
    """The names of all presets, in the order in which papers and tables list them."""
    return list(_presets)


def get(name: str) -> Preset:
    """The preset of this name.

    A name may be cut short at a hyphen where only one preset continues it:
    `you2020/hc-sa/iwslt16` is `you2020/hc-sa/iwslt16-en-de`. The `/-sa` and `/-ff`
    of You et al., for models without those sub-layers, are spelled `-no-sa` and
    `-no-ff` here and understood either way.

    Raises:
        ValueError: there is no such preset, or more than one; the message lists
            the names that come closest, of all papers.
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
    """The names that come closest to one, or that have a part which does."""
    names_with: dict[str, list[str]] = {}
    for name in _presets:
        parts = name.split("/")
        for start, end in combinations(range(len(parts) + 1), 2):
            names_with.setdefault("/".join(parts[start:end]), []).append(name)
    parts = difflib.get_close_matches(wanted, names_with, n=3 * count, cutoff=0.5)
    found = dict.fromkeys(name for part in parts for name in names_with[part])
    return [*found][:count]


def print_table(containing: str = "") -> None:
    """Prints the presets, paper by paper: layers x width, parameters, figures.

    The figures are BLEU by direction; where there is none, that of the development
    set, or ROUGE.

    Args:
        containing: part of the names that are wanted.

    Example:

    >>> from keras_attnvariants import presets
    >>> presets.list("hc-sa/iwslt16")  # doctest: +SKIP
    """
    console = Console()
    wanted = [preset for name, preset in _presets.items() if containing in name]
    for paper, presets in groupby(wanted, key=lambda preset: preset.paper):
        console.print(f"\n{paper}", style="bold", highlight=False)
        console.print(paper_table([*presets]))


def paper_table(presets: Sequence[Preset]) -> Table:
    """The presets of one paper, narrow enough for 80 columns."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("preset", no_wrap=True)
    table.add_column("size", no_wrap=True)
    table.add_column("params", no_wrap=True, justify="right")
    table.add_column("published")
    scores = [figures(preset.published) for preset in presets]
    digits = max(decimals(score) for row in scores for score in [0.0, *row.values()])
    for preset, row in zip(presets, scores, strict=True):
        # Non-breaking spaces: a narrow terminal shows one figure per line.
        cells = (f"{k}\N{NO-BREAK SPACE}{v:.{digits}f}" for k, v in row.items())
        table.add_row(*table_row(preset), ", ".join(cells))
    return table


def table_row(preset: Preset) -> tuple[str, str, str]:
    """Name, size and number of parameters of a preset."""
    options = preset.options
    layers = options.get("num_layers", 1), options.get("num_decoder_layers")
    return (
        preset.name,
        f"{'+'.join(str(n) for n in layers if n)}x{options['hidden_dim']}",
        f"{preset.parameters / 1e6:.2f}M",
    )


def figures(published: Published) -> Mapping[str, float]:
    """The figures that a table has room for."""
    if published.bleu or not published.dev_bleu:
        return published.bleu or published.rouge
    return {f"dev {way}": score for way, score in published.dev_bleu.items()}


def decimals(score: float) -> int:
    """How many decimals a figure has."""
    return len(str(score).partition(".")[2])
