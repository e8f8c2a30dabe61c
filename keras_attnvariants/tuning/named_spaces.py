"""Search spaces from papers, by name."""

from collections.abc import Callable
from typing import Any

from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import loem2022
from keras_attnvariants.presets import you2020
from keras_attnvariants.presets.you2020 import CENTER
from keras_attnvariants.presets.you2020 import LEFT
from keras_attnvariants.presets.you2020 import RIGHT
from keras_attnvariants.tuning.dimensions import PLACES
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.utils.checks import check_known

LETTERS = {"l": LEFT, "c": CENTER, "r": RIGHT}
# Offsets of the lowest and the highest layer, encoder | decoder.
TABLE_6 = ("ll | ll", "ll | cc", "ll | lc", "lr | lc")


def offsets(preset: Preset) -> SearchSpace:
    """You et al. 2020, Table 6: offsets of the lowest and the highest layer."""
    return SearchSpace(
        systems={"offsets": {n: with_outer_offsets(preset, n) for n in TABLE_6}}
    )


def with_outer_offsets(preset: Preset, name: str) -> dict[str, Any]:
    """Hard-coded self-attention with these offsets in the outer layers."""
    encoder, decoder = (
        [LETTERS[letter] for letter in part] for part in name.split(" | ")
    )
    return self_attention(
        you2020.architecture(
            num_layers=preset.options["num_layers"],
            num_heads=preset.options["num_heads"],
            self_attention="gaussian",
            outer_offsets=(encoder, decoder),
        )
    )


def layer_hybrids(preset: Preset) -> SearchSpace:
    """Loem et al. 2022, Fig. 3: n-grams in the lowest m layers, attention above."""
    options = preset.options
    names = ("num_layers", "num_heads", "intermediate_dim", "dropout", "attention")
    sizes = {name: options[name] for name in names if name in options}
    return SearchSpace(
        systems={
            "lowest": {
                f"m = {count}": self_attention(
                    loem2022.both(loem2022.lowest_ngram, count=count)(**sizes)
                )
                for count in range(options["num_layers"] + 1)
            }
        }
    )


def self_attention(arguments: dict[str, Any]) -> dict[str, Any]:
    """The self-attention of both stacks."""
    return {place: arguments[place] for place in list(PLACES.values())[:2]}


SPACES: dict[str, Callable[[Preset], SearchSpace]] = {
    "you2020/offsets": offsets,
    "loem2022/layer-hybrids": layer_hybrids,
}


def named_space(name: str, preset: Preset) -> SearchSpace:
    """A search space by its name, for the sizes of a preset.

    Raises:
        ValueError: there is no such space, or the preset is not a Transformer with
            layers and heads.

    Example:

    >>> from keras_attnvariants import presets
    >>> preset = presets.get("kav/hc-sa/multi30k")
    >>> named_space("you2020/offsets", preset).points(preset)
    4
    """
    check_known("`space`", name, SPACES)
    missing = {"num_layers", "num_heads", "intermediate_dim"} - preset.options.keys()
    if missing:
        raise ValueError(
            f"The space {name!r} needs a Transformer; {preset.name} has no "
            f"{', '.join(sorted(missing))}. Received: {preset.name}"
        )
    return SPACES[name](preset)
