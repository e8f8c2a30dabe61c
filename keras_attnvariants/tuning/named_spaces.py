"""Search spaces by name: those that papers explored, and starting points of ours."""

import functools
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from keras_attnvariants.presets import Preset
from keras_attnvariants.presets import loem2022
from keras_attnvariants.presets import you2020
from keras_attnvariants.presets.you2020 import CENTER
from keras_attnvariants.presets.you2020 import LEFT
from keras_attnvariants.presets.you2020 import RIGHT
from keras_attnvariants.tuning.dimensions import ALL
from keras_attnvariants.tuning.dimensions import PLACES
from keras_attnvariants.tuning.dimensions import Range
from keras_attnvariants.tuning.space import SearchSpace
from keras_attnvariants.utils.checks import check_known

LETTERS = {"l": LEFT, "c": CENTER, "r": RIGHT}
# Offsets of the lowest and the highest layer, encoder | decoder.
TABLE_6 = ("ll | ll", "ll | cc", "ll | lc", "lr | lc")
# All pairs of left, center and right there; a decoder has no right.
ALL_OFFSETS = [
    f"{''.join(encoder)} | {''.join(decoder)}"
    for encoder in itertools.combinations_with_replacement("lcr", 2)
    for decoder in itertools.combinations_with_replacement("lc", 2)
]


def offsets(names: Iterable[str], preset: Preset) -> SearchSpace:
    """Offsets of the lowest and the highest layer, by names such as in `TABLE_6`."""
    return SearchSpace(systems={"offsets": {n: outer(preset, n) for n in names}})


def outer(preset: Preset, name: str) -> dict[str, Any]:
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


def attention(preset: Preset, per_layer: bool = False) -> SearchSpace:
    """Every registered variant, in every place that it can serve in.

    Args:
        preset: the preset that is searched.
        per_layer: whether each layer has a variant of its own.
    """
    return SearchSpace(attention=dict.fromkeys(PLACES, ALL), per_layer=per_layer)


def training(preset: Preset) -> SearchSpace:
    """The highest learning rate, warm-up, batches and dropout."""
    batch = preset.training.batch_tokens
    return SearchSpace(
        sizes={"dropout": [0.0, 0.1, 0.2, 0.3]},
        training={
            "learning_rate": Range(3e-4, 5e-3, log=True),
            "warmup_steps": [250, 500, 1000, 2000],
            "batch_tokens": [batch // 2, batch, 2 * batch],
        },
    )


SPACES: dict[str, Callable[[Preset], SearchSpace]] = {
    "you2020/offsets": functools.partial(offsets, TABLE_6),
    "you2020/all-offsets": functools.partial(offsets, ALL_OFFSETS),
    "loem2022/layer-hybrids": layer_hybrids,
    "attention": attention,
    "attention-per-layer": functools.partial(attention, per_layer=True),
    "training": training,
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
