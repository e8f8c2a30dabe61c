"""Presets of base with some attention sub-layers hard-coded, as in hc-all.

`kav/cross-1/multi30k`, for example, has hard-coded cross-attention in its lowest layer.
The comparison one-sublayer.toml uses them.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from keras_attnvariants import presets

PLACES = ("encoder", "decoder", "cross")
BASE, HARD_CODED = (presets.get(f"kav/{name}/multi30k") for name in ("base", "hc-all"))


def architecture(hard_coded: set[tuple[str, int]], **options: Any) -> dict[str, Any]:
    """The architecture of base with some layers of hc-all.

    Args:
        hard_coded: places and numbers of these layers, from 1 for the lowest.
        **options: those of hc-all.
    """
    fixed = HARD_CODED.architecture(**options)
    learned = BASE.architecture(**{name: options[name] for name in BASE.options})
    for place in PLACES:
        key = f"{place}_attention"
        fixed[key] = [
            (fixed if (place, number) in hard_coded else learned)[key]
            for number in range(1, options["num_layers"] + 1)
        ]
    return fixed


def register(name: str, *hard_coded: tuple[str, int]) -> None:
    """Registers a preset with these layers hard-coded."""
    presets.register(
        replace(
            HARD_CODED,
            name=f"kav/{name}/multi30k",
            architecture=partial(architecture, set(hard_coded)),
            notes="Base with hard-coded attention in some layers.",
        )
    )


for _place in PLACES:
    for _number in range(1, BASE.options["num_layers"] + 1):
        register(f"{_place}-{_number}", (_place, _number))
# The six sub-layers whose replacement raises the validation loss least.
PASSED = [("encoder", 1), ("encoder", 2), ("encoder", 3), ("encoder", 4)]
PASSED += [("decoder", 1), ("decoder", 4)]
register("passed", *PASSED)
