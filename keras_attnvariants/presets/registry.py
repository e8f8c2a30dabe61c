"""All presets by name."""

import difflib
from itertools import combinations

from keras_attnvariants.presets.preset import Preset

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


def all_presets() -> list[Preset]:
    """All presets, in the order of `names`."""
    return list(_presets.values())


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
