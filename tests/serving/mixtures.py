"""Several variants in one model: every layer has other attention.

Most of the time of an export is spent outside the layers, so many variants share one
model. Layers are as in the presets of the variants; a preset that differs from `base`
in anything but its layers gets its own model.
"""

from itertools import zip_longest
from typing import Any

from keras_attnvariants import presets

ALL_VARIANTS = [
    name.split("/")[1]
    for name in presets.names()
    if name.startswith("kav/") and name.endswith("/multi30k")
]
# Variants whose layers differ from each other need two of them.
DEEP = ("sh-x", "lowest-2-ngram", "megatron")
CROSS = "cross_attention"
PLACES = ("encoder_attention", "decoder_attention", CROSS, "feed_forward")
# Options of a preset for one layer, by place.
Layer = dict[str, Any]


def sizes_of(variant: str) -> dict[str, int]:
    """The smallest sizes of a variant, as options of its preset."""
    sizes = {
        "num_layers": 2 if variant in DEEP else 1,
        "hidden_dim": 16,
        "intermediate_dim": 32,
        "position_dim": 4,
    }
    options = presets.get(f"kav/{variant}/multi30k").options
    return {name: size for name, size in sizes.items() if name in options}


def config_of(variant: str) -> dict[str, Any]:
    """The arguments of the model of a variant, in its smallest size."""
    preset = presets.get(f"kav/{variant}/multi30k")
    return preset.architecture(**{**preset.options, **sizes_of(variant)})


def layers_of(variant: str) -> list[Layer]:
    """The different layers of a variant."""
    config = config_of(variant)
    columns = [config.get(place, True) for place in PLACES]
    rows = zip(
        *(c if isinstance(c, list) else [c] * config["num_layers"] for c in columns),
        strict=True,
    )
    layers = [dict(zip(PLACES, row, strict=True)) for row in rows]
    return [layer for n, layer in enumerate(layers) if layer not in layers[:n]]


def mixes(variant: str) -> bool:
    """Whether a variant differs from `base` in nothing but its layers."""
    one, other = (
        {
            name: value
            for name, value in config_of(each).items()
            if name not in (*PLACES, "num_layers") and value is not None
        }
        for each in (variant, "base")
    )
    return one == other


def mixtures_of(variants: list[str], layers: int) -> list[str]:
    """Mixtures of a limited number of layers, with all of some variants.

    Where one changes the self-attention alone, and another the cross-attention, one
    layer has both.
    """
    base = layers_of("base")[0]
    differing = {
        variant: {
            p for p in PLACES for each in layers_of(variant) if each[p] != base[p]
        }
        for variant in variants
    }
    selves = [v for v, places in differing.items() if CROSS not in places]
    crosses = [v for v, places in differing.items() if places == {CROSS}]
    both = [v for v in variants if v not in (*selves, *crosses)]
    pairs = zip_longest(selves, crosses)
    parts = ["/".join(filter(None, pair)) for pair in pairs] + both
    count = -(-len(parts) // layers)
    return ["+".join(parts[n::count]) for n in range(count)]  # as many of each kind


def members_of(mixture: str) -> list[str]:
    """The variants of a mixture."""
    return mixture.replace("/", "+").split("+")


def arguments_of(mixture: str) -> dict[str, Any]:
    """Arguments that make a mixture of the preset `base`.

    Args:
        mixture: variants joined by `+`, each in layers of its own, or by `/`: layers
            of the first with the cross-attention of the second.
    """
    layers = []
    for part in mixture.split("+"):
        first, *second = part.split("/")
        changed = {CROSS: layers_of(second[0])[0][CROSS]} if second else {}
        layers += [layer | changed for layer in layers_of(first)]
    stacked = {place: [layer[place] for layer in layers] for place in PLACES}
    return {**sizes_of("base"), "num_layers": len(layers), **stacked}
