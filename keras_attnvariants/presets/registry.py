"""The list of presets."""

import difflib

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from keras_attnvariants.presets.preset import Preset

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
            the names that come closest.
    """
    wanted = name.replace("/-", "-no-")
    if wanted in _presets:
        return _presets[wanted]
    longer = [known for known in _presets if known.startswith(f"{wanted}-")]
    if len(longer) == 1:
        return _presets[longer[0]]
    near = longer or difflib.get_close_matches(wanted, _presets, n=4, cutoff=0.5)
    hint = f"the nearest are {', '.join(near)}" if near else "`names()` lists them all"
    raise ValueError(
        f"`name` must be the name of one preset; {hint}. Received: {name!r}"
    )


def print_table(containing: str = "") -> None:
    """Prints the presets as a table: layers x width, parameters, published BLEU.

    Args:
        containing: part of the names that are wanted.

    Example:

    >>> from keras_attnvariants import presets
    >>> presets.list("hc-sa/iwslt16")  # doctest: +SKIP
    """
    table = Table(box=SIMPLE_HEAD)
    table.add_column("preset", no_wrap=True)
    table.add_column("size")
    table.add_column("parameters", justify="right")
    table.add_column("BLEU")
    for preset in _presets.values():
        if containing in preset.name:
            table.add_row(*table_row(preset))
    Console().print(table)


def table_row(preset: Preset) -> tuple[str, str, str, str]:
    """The cells of one preset."""
    options, figures = preset.options, preset.published.bleu
    # Non-breaking spaces: a narrow terminal shows one direction per line.
    bleu = (f"{way}\N{NO-BREAK SPACE}{score:.1f}" for way, score in figures.items())
    return (
        preset.name,
        f"{options.get('num_layers', 1)} x {options['hidden_dim']}",
        f"{preset.parameters / 1e6:.2f}M",
        ", ".join(bleu),
    )
